"""Tools of a Python agent, found in its source text."""

import pytest

from holdfast.model.spec import ToolRef
from holdfast.reading.node import Node
from holdfast.spec.rules.tools import find_tools
from holdfast.spec.sections.agent import AgentSection


def agent(**keys):
    return AgentSection(at=Node("map", 1, 1), type="python", endpoint="bot:ask", **keys)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import holdfast\n@holdfast.tool\ndef a(): ...\n", {"a"}),
        ("import holdfast as h\n@h.tool(name='b')\nasync def a(): ...\n", {"b"}),
        ("from holdfast import tool as t\n@t\ndef a(): ...\n@t()\ndef c(): ...\n", {"a", "c"}),
    ],
)
def test_marked_functions_are_tools(tmp_path, source, names):
    (tmp_path / "bot.py").write_text(source)
    found = find_tools(agent(), tmp_path)
    assert (found.names, found.declared, found.certain) == (names, True, True)


def test_marks_in_local_modules_count(tmp_path):
    (tmp_path / "bot.py").write_text("from kit.web import search\n")
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__init__.py").write_text("")
    (tmp_path / "kit" / "web.py").write_text("from holdfast import tool\n@tool\ndef search(): ...\n")
    assert find_tools(agent(), tmp_path).names == {"search"}


def test_mark_with_a_name_that_cannot_be_read_leaves_names_uncertain(tmp_path):
    (tmp_path / "bot.py").write_text("import holdfast\nf = holdfast.tool(lambda: 1)\n")
    found = find_tools(agent(), tmp_path)
    assert (found.declared, found.certain) == (True, False)


def test_decorator_of_another_library_is_not_a_mark(tmp_path):
    (tmp_path / "bot.py").write_text("from langchain.tools import tool\n@tool\ndef a(): ...\n")
    assert find_tools(agent(), tmp_path).declared is False


def test_decorated_function_has_an_uncertain_name(tmp_path):
    (tmp_path / "bot.py").write_text("@wrap\ndef a(): ...\ndef b(): ...\n")
    assert find_tools(agent(tools=(ToolRef("bot:b"),)), tmp_path).certain
    assert not find_tools(agent(tools=(ToolRef("bot:a"),)), tmp_path).certain


@pytest.mark.parametrize("source", ["def (:\n", "\x00", "(" * 5000, "x = '\\d'\n" + "("])
def test_source_that_does_not_parse_leaves_the_question_to_the_run(tmp_path, source):
    (tmp_path / "bot.py").write_text(source)
    found = find_tools(agent(), tmp_path)
    assert (found.declared, found.certain) == (True, False)


def test_nothing_is_imported(tmp_path):
    (tmp_path / "bot.py").write_text("raise SystemExit('imported')\n")
    assert find_tools(agent(), tmp_path).declared is False
