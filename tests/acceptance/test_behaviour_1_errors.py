"""Behaviour 1: nothing is accepted and ignored. Every error with its place, all at once, before any agent call."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from files1 import CALM, ECHO, PYTHON, RULES, SPEC, errors_of, project, tell, text_at

TOOLS = PYTHON.replace("}", ", tools: ['bot:search']}", 1)
SEARCH = "def search(q): return q\n" + ECHO
INLINE = SPEC.replace("type: python", "type: python, isolation: inline")


# -- "An unknown key, enum value, tool or service name ... with file:line:column ... and the near miss"
SLIPS = {
    "top key": (SPEC.replace("golden_prompts", "golden_promts"), "golden_promts", "golden_prompts"),
    "agent key": (SPEC.replace("type: python", "type: python, timout: 5s"), "timout", "timeout"),
    "rule key": (SPEC.replace("value: source", "value: source, severty: high"), "severty", "severity"),
    "check field": (SPEC.replace("value: source", "valu: source"), "valu", "value"),
    "contract key": (SPEC.replace("name: C", "name: C\n  isolaton: cell"), "isolaton", "isolation"),
    "scenario key": (SPEC + "    tool_fault: []\n", "tool_fault", "tool_faults"),
    "scoring key": (SPEC + "scoring: {min_scor: 5}\n", "min_scor", "min_score"),
    "advanced key": (SPEC + "advanced: {concurency: 5}\n", "concurency", "concurrency"),
    "severity": (SPEC.replace("value: source", "value: source, severity: critcal"), "critcal", "critical"),
    "when": (SPEC.replace("value: source", "value: source, when: alway"), "alway", "always"),
    "check type": (SPEC.replace("type: contains", "type: contain"), "contain", "contains"),
    "agent type": (SPEC.replace("type: python", "type: pyton"), "pyton", "python"),
    "isolation": (SPEC.replace("type: python", "type: python, isolation: frsh"), "frsh", "fresh"),
    "method": (
        SPEC.replace('type: python, endpoint: "bot:answer"', "endpoint: http://x/, method: PSOT"),
        "PSOT",
        "POST",
    ),
    "attack": (SPEC + "    context_attacks: [{type: memory_poison}]\n", "memory_poison", "memory_poisoning"),
    "profile": (SPEC + "    profile: api_outge\n", "api_outge", "api_outage"),
    "aggregation": (SPEC + "scoring: {replica_aggregation: majorty}\n", "majorty", "majority"),
    "output format": (SPEC + "output: {format: htm}\n", "htm", "html"),
}


@pytest.mark.parametrize("what", SLIPS)
def test_unknown_name_is_an_error_with_its_place_and_the_near_miss(tmp_path: Path, what: str) -> None:
    text, wrong, meant = SLIPS[what]
    found = [p for p in errors_of(tmp_path, text) if p.code in ("unknown-key", "unknown-value")]
    assert len(found) == 1, found
    assert text_at(text, found[0]) == wrong
    assert f"did you mean {meant}?" in found[0].hint


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


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"a: [", b"a: b: c", b"", b"- 1", b"\x00", b"'", b"a: &x *x", b"x"])
def test_a_file_that_is_no_spec_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "holdfast.yaml").write_bytes(data)
    told = tell(tmp_path, "contract", "validate", "--json")
    assert told.code == 4
    assert told.json["errors"]
    assert told.json["valid"] is False


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


def test_the_layout_of_an_error(tmp_path: Path) -> None:
    spec = "agent: {type: python, endpoint: 'bot:answer'}\ngolden_prompts: [x]\n" + RULES.replace(
        "value: source}", "value: source,\n       severty: critical}"
    )
    project(tmp_path, spec + CALM)
    told = tell(tmp_path, "contract", "validate")
    assert told.err.splitlines()[:3] == [
        "holdfast.yaml:8:8  contract.invariants[0].severty  unknown key  [unknown-key]",
        "    8 │        severty: critical}",
        "      │        ^^^^^^^ did you mean severity?",
    ]


def test_exit_4_and_json_from_the_real_command(tmp_path: Path) -> None:
    project(tmp_path, MANY, "open('imported', 'w')\n" + ECHO)
    command = [str(Path(sys.executable).with_name("holdfast")), "contract", "run", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert len(json.loads(done.stdout)["errors"]) == len(WANTED)
    assert not (tmp_path / "imported").exists()
