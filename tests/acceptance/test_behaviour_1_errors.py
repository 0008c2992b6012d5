"""Behaviour 1: nothing is accepted and ignored. Every error with its place, all at once, before any agent call."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import CALM, ECHO, PYTHON, RULES, project, tell

TOOLS = PYTHON.replace("}", ", tools: ['bot:search']}", 1)
SEARCH = "def search(q): return q\n" + ECHO


# -- "An unknown key, enum value, tool or service name ... with file:line:column ... and the near miss"


def test_unknown_fault_mode_and_tool_name(tmp_path: Path) -> None:
    fault = "  - {name: x, tool_faults: [{tool: search, mode: eror}]}\n"
    spec = TOOLS + RULES + CALM + fault
    project(tmp_path, spec, SEARCH)
    told = tell(tmp_path, "validate", "--json")
    assert [(e["code"], e["hint"]) for e in told.json["errors"]] == [("unknown-value", "did you mean error?")]
    spec = spec.replace("eror", "error").replace("tool: search", "tool: serch")
    project(tmp_path, spec, SEARCH)
    (error,) = tell(tmp_path, "validate", "--json").json["errors"]
    assert (error["code"], error["hint"]) == ("unknown-tool", "did you mean search?")
    line = spec.splitlines()[error["line"] - 1]
    assert line[error["column"] - 1 :].startswith("serch")


def test_a_tool_name_that_only_the_run_can_know_is_refused_before_the_agent_is_asked(tmp_path: Path) -> None:
    agent = """
class Search:
    name = "web_search"
    def __call__(self, q): return q
search = Search()
def answer(prompt):
    open("asked", "w")
    return "source"
"""
    fault = "  - {name: x, tool_faults: [{tool: web_serch, mode: error}]}\n"
    project(tmp_path, TOOLS + RULES + CALM + fault, agent)
    assert tell(tmp_path, "validate").code == 0
    told = tell(tmp_path, "contract", "run")
    assert told.code == 4
    assert "web_serch" in told.err
    assert "did you mean web_search?" in told.err
    assert not (tmp_path / "asked").exists()


# -- "an unreadable file"
@pytest.mark.parametrize("name", ["nowhere.yaml", "."])
def test_an_unreadable_file_is_an_error_and_not_a_traceback(tmp_path: Path, name: str) -> None:
    told = tell(tmp_path, "contract", "run", "-c", name)
    assert told.code == 4
    assert name in told.err
    assert "Traceback" not in told.err


# -- "Every error of the file is shown at once. Exit 4, no agent call made; with --json the errors are JSON"
MANY = """
agent: {type: python, endpoint: "bot:answer", timout: 5s}
golden_prompts: []
contract:
  name: C
  invariants:
    - {id: a, type: contain, value: x}
    - {id: b, type: regex, pattern: "("}
    - {id: c, type: latency, max_ms: fast}
chaos_matrix:
  - {name: x, tool_faults: [{tool: search, mode: eror}]}
replicas: 0
"""
WANTED = [
    "agent.timout", "golden_prompts", "contract.invariants[0].type", "contract.invariants[1].pattern",
    "contract.invariants[2].max_ms", "chaos_matrix[0].tool_faults[0].mode", "replicas",
]  # fmt: skip


@pytest.mark.parametrize(
    "command", [("validate",), ("contract", "validate"), ("contract", "run"), ("contract", "score")]
)
def test_every_error_at_once_exit_4_and_no_agent_call(tmp_path: Path, command: tuple[str, ...]) -> None:
    project(tmp_path, MANY, "open('imported', 'w')\n" + ECHO)
    told = tell(tmp_path, *command)
    assert told.code == 4
    assert told.out == ""
    for path in WANTED:
        assert f"  {path}  " in told.err
    assert told.err.rstrip().splitlines()[-1].startswith(f"{len(WANTED)} errors.")
    assert not (tmp_path / "imported").exists()
    assert not (tmp_path / ".holdfast").exists()


@pytest.mark.parametrize("command", [("validate",), ("contract", "validate"), ("contract", "run")])
def test_errors_as_json(tmp_path: Path, command: tuple[str, ...]) -> None:
    project(tmp_path, MANY, "open('imported', 'w')\n" + ECHO)
    told = tell(tmp_path, *command, "--json")
    assert (told.code, told.err, told.json["exit_code"]) == (4, "", 4)
    assert [e["path"] for e in told.json["errors"]] == WANTED
    assert all(e["line"] and e["column"] and e["message"] and e["code"] for e in told.json["errors"])
    assert not (tmp_path / "imported").exists()
