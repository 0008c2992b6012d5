"""Whether references to code can work, without running the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.agents.python.source_check import find_source_problems
from holdfast.model.spec import AgentSpec, ToolRef

SOURCES = {
    "sound.py": "def ask(prompt): ...\nasync def later(prompt, *, depth=1): ...\nclass Bot: pass\nbot = Bot()\n",
    "value.py": "ask = 3\ntext = 'x'\nlater = None\ndef fill():\n    global later\n    later = print\n",
    "bound.py": "if True:\n    ask = None\nelse:\n    ask = print\na, (b, *c) = 1, (2, 3)\nfor d in (): pass\n"
    "with open('x') as e: pass\ntry:\n    import nowhere as f\nexcept ImportError as g:\n    f = None\n"
    "(h := 1)\nimport os.path\n",
    "star.py": "from sound import  *\n",
    "dynamic.py": "globals()['ask'] = print\n",
    "lazy.py": "def __getattr__(name): return print\n",
    "broken.py": "import sys\n\nimport no_such_library.part\n",
    "over.py": "from broken import ask\ndef ask(prompt): ...\n",
    "path.py": "import sys\nsys.path.append('lib')\nimport no_such_library\ndef ask(prompt): ...\n",
    "typed.py": "import typing\nif typing.TYPE_CHECKING:\n    import no_such_library\ndef ask(prompt): ...\n",
    "syntax.py": "def ask(prompt:\n",
    "circle.py": "import circle\ndef ask(prompt): ...\n",
    "none.py": "def ask(): ...\ndef two(a, b): ...\ndef words(*a): ...\ndef named(*, a): ...\n",
    "pack/__init__.py": "raise SystemExit('imported')\n",
    "pack/inner.py": "from . import other\ndef ask(prompt): ...\n",
    "decorated.py": "import functools\n@functools.cache\ndef ask(): ...\n",
    "runs.py": "open('touched', 'w')\ndef ask(prompt): ...\n",
    "space/inner/deep.py": "def ask(prompt): ...\n",
    "long.py": f"x = {'+'.join(['1'] * 5000)}\ndef ask(prompt): ...\n",
    "src/apart.py": "def ask(prompt): ...\n",
    "extend.py": "import sys\nsys.path.insert(0, 'lib')\n",
    "extended.py": "import extend\nimport no_such_library\ndef ask(prompt): ...\n",
    "site_dir.py": "import site\nsite.addsitedir('lib')\nimport no_such_library\ndef ask(prompt): ...\n",
    "hook.py": "import sys\nsys.meta_path.insert(0, None)\n",
    "hooked.py": "import hook\nimport no_such_library\ndef ask(prompt): ...\n",
    "wide/__init__.py": "__path__.append('more')\n",
    "by_module.py": "import sys\nsys.modules[__name__].ask = print\n",
    "by_class.py": "import sys\nclass M: ask = print\nsys.modules[__name__].__class__ = M\n",
    "by_exec.py": "import builtins\nbuiltins.exec('def a' 'sk(p): ...')\n",
    "by_match.py": "match [print]:\n    case [ask]: pass\n",
    "by_name.py": "import registry\nregistry.fill(__name__)\n",
    "registry.py": "def fill(name): ...\n",
    "logs.py": "import logging\nlog = logging.getLogger(__name__)\nif __name__ == '__main__': pass\n",
    "patched.py": "import patch\n",
    "patch.py": "import patched\npatched.ask = print\n",
    "itself.py": "import itself as me\nme.ask = print\n",
    "later.py": "def ask(prompt, other): ...\nask.__defaults__ = (1,)\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "endpoint",
    [
        "sound:ask", "sound:later", "sound:Bot", "sound:bot", "sound:bot.answer", "value:later", "bound:ask", "bound:b",
        "bound:c", "bound:d", "bound:e", "bound:f", "bound:h", "bound:os", "star:ask", "dynamic:ask", "lazy:ask",
        "path:ask", "typed:ask", "circle:ask", "none:words", "pack.inner:ask", "pack:inner", "decorated:ask",
        "json:loads", "os.path:join", "sys:exit", "math:sqrt", "runs:ask", "space.inner.deep:ask", "long:ask",
        "extended:ask", "site_dir:ask", "hooked:ask", "wide.elsewhere:ask", "by_module:ask", "by_class:ask",
        "by_exec:ask", "by_match:ask", "by_name:ask",
    ],
)  # fmt: skip
def test_what_may_work_is_not_a_problem_and_is_not_run(root: Path, endpoint: str) -> None:
    assert list(find_source_problems(AgentSpec("python", endpoint), root)) == []
    assert not (root / "touched").exists()


@pytest.mark.parametrize(
    ("endpoint", "suggestion"),
    [("sound:aks", "ask"), ("sound:nothing_like_it", ""), ("logs:ask", ""), ("logs:logg", "log")],
)
def test_a_name_that_the_module_next_to_the_spec_does_not_contain_is_an_error(
    root: Path, endpoint: str, suggestion: str
) -> None:
    (found,) = find_source_problems(AgentSpec("python", endpoint), root)
    assert (found.key, found.suggestion, found.certain) == ("agent.endpoint", suggestion, True)


@pytest.mark.parametrize(
    ("endpoint", "suggestion", "place"),
    [
        ("soundd:ask", "sound", ""),
        ("value:ask", "", ""),
        ("value:text", "", ""),
        ("nowhere.at.all:f", "", ""),
        ("pack.outer:f", "", ""),
        ("broken:ask", "", "broken.py:3"),
        ("over:ask", "", "broken.py:3"),
        ("syntax:ask", "", "syntax.py:1"),
        ("none:ask", "", ""),
        ("none:two", "", ""),
        ("none:named", "", ""),
        ("later:ask", "", ""),
        ("patched:ask", "", ""),
        ("itself:ask", "", ""),
        ("sound:prompt", "", ""),
    ],
)
def test_what_a_run_will_try_is_a_warning(root: Path, endpoint: str, suggestion: str, place: str) -> None:
    (found,) = find_source_problems(AgentSpec("python", endpoint), root)
    assert (found.key, found.suggestion, found.certain) == ("agent.endpoint", suggestion, False)
    assert place in found.message


@pytest.mark.parametrize("python_path", ["src", "${NOT_KNOWN_YET}/src"])
def test_python_path_is_relative_to_the_spec(root: Path, python_path: str) -> None:
    agent = AgentSpec("python", "apart:ask", env={"PYTHONPATH": python_path})
    assert list(find_source_problems(agent, root)) == []
    assert len(list(find_source_problems(AgentSpec("python", "apart:ask"), root))) == 1


def test_every_reference_of_the_section(root: Path) -> None:
    agent = AgentSpec(
        "python",
        "sound:ask",
        tools=(ToolRef("sound:ask"), ToolRef("sound:atk")),
        llm=(ToolRef("nowhere:f"),),
        tool_registry="sound:TOOLS",
        reset_function="sound:reset",
    )
    assert [one.key for one in find_source_problems(agent, root)] == [
        "agent.tools[1]", "agent.llm[0]", "agent.tool_registry", "agent.reset_function",
    ]  # fmt: skip
    http = AgentSpec("http", "http://localhost:1/", reset_function="sound:resset")
    assert [one.key for one in find_source_problems(http, root)] == ["agent.reset_function"]


def test_a_reference_that_is_filled_in_later_is_left_alone(root: Path) -> None:
    assert list(find_source_problems(AgentSpec("python", "{{ params.module }}:ask"), root)) == []
