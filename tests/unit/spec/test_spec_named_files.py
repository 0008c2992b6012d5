"""Files beside a spec: what is wrong in them is found when the spec is read, and nothing is resolved."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.model.spec import ToolRef
from holdfast.reading.node import Node
from holdfast.spec import check
from holdfast.spec.rules.tools import find_tools
from holdfast.spec.sections.agent import AgentSection

SPEC = """
agent:
  type: command
  command: my-agent {mcp_config}
  mcp_config: %s
golden_prompts: [one]
contract:
  name: c
  invariants: [{id: answers, type: completes, description: d}]
  chaos_matrix: [{name: calm}]
"""
SERVERS = '{mcpServers: {search: {url: "https://x.example/mcp", headers: {Authorization: "Bearer ${SOME_TOKEN}"}}}}'


def problems(folder: Path, config: str) -> list[tuple[str, str]]:
    path = folder / "spec.yaml"
    path.write_text(SPEC % config)
    return [(problem.severity, problem.message) for problem in check(path, environ={}).problems]


def test_an_unset_variable_of_an_mcp_server_is_a_warning_and_no_error(tmp_path: Path) -> None:
    assert [severity for severity, _ in problems(tmp_path, SERVERS)] == ["warning"]


def test_an_mcp_config_file_is_read_without_its_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_TOKEN", raising=False)
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"s": {"url": "https://x.example/${SOME_TOKEN}"}}}')
    assert problems(tmp_path, "mcp.json") == []


def test_a_mistake_in_an_mcp_config_file_is_an_error_of_the_spec(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"s": {"args": []}}}')
    golden(problems(tmp_path, "mcp.json"))


# Tools of a Python agent, found in its source text.


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
