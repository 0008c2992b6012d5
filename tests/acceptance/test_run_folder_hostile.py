"""Whatever lies in a run's folder, no command ends in a bug of Holdfast: security.md, recorded things are untrusted."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli import CALM, DOWN, Project, Result, contract, forget_end, rule, rundir

RULES = [rule("source", value="source"), rule("says", value="says")]
FILES = ("trials.jsonl", "observations-0.jsonl", "verdicts-1.jsonl")
COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", "1", "-o", "r.html", "-o", "r.md", "-o", "r.xml", "-o", "r.json"),
    "judge": ("judge", "1"),
    "dry run": ("contract", "run", "--resume", "1", "--dry-run"),
    "resume": ("contract", "run", "--resume", "1", "--no-preflight", "--otlp", "spans.jsonl"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    agent = {"type": "python", "endpoint": "agent:ask", "tools": ["agent:search"], "isolation": "inline"}
    spec = contract(
        RULES,
        [CALM, DOWN],
        agent=agent,
        prompts=("what of {{ params.region }}?",),
        parallelism={"matrix": {"region": ["eu", "us"]}},
    )
    project = Project(tmp_path_factory.mktemp("made") / "p", spec)
    assert project.run("--no-preflight").code == 1
    return project


@pytest.fixture
def copy(made: Project, tmp_path: Path) -> Project:
    shutil.copytree(made.folder, tmp_path / "p")
    again = Project.__new__(Project)
    again.folder = tmp_path / "p"
    return again


def unsealed(found: Project) -> Path:
    forget_end(rundir(found))
    return rundir(found)


def is_told(result: Result) -> None:
    """It ended as it should, or says in a line what is wrong: never a bug of ours."""
    said = result.out + result.err
    assert "bug in Holdfast" not in said, said
    assert "Traceback" not in said
    assert result.code in (0, 1, 2, 4, 5), said
    if result.code == 4:
        assert "error:" in result.err


Change = Callable[[dict[str, Any]], Any]


def exchanged(**values: Any) -> Change:
    return lambda record: {**record, **values}


CHANGES: dict[str, Change] = {
    "another scenario": exchanged(scenario="nope"),
    "another task": exchanged(task={"turns": ["something else"]}),
    "no task": exchanged(task={"turns": []}),
    "other params": exchanged(params={"x": [1, {"y": None}]}),
    "another rule": exchanged(invariant="nope"),
    "another kind": exchanged(kind="control"),
    "a huge replica": exchanged(replica=10**15),
    "a negative replica": exchanged(replica=-7),
    "another trial": exchanged(trial="ffffffffffff", id="ffffffffffff"),
    "a path for an id": exchanged(trial="../../../etc/x", id="../../../etc/x"),
    "no id": exchanged(trial="", id=""),
    "no turns": exchanged(turns=[]),
    "a turn that there is not": exchanged(turn=99, marks=[[5, 2], [-3, 10**12]]),
    "a negative turn": exchanged(turn=-99),
    "a score beyond": exchanged(score=1e308),
    "a ledger of nothing": exchanged(ledger=[{"index": 99, "plane": "x", "target": "y", "mode": "z", "call": -1}]),
    "a blob that there is not": exchanged(output={"blob": "0" * 64, "bytes": 3, "head": "x"}),
    "events that there are not": exchanged(events=10**12),
    "control codes": exchanged(
        output="\x1b[2J\x00\ud7ff", reason="\x07<script>", turns=[{"asked": "\x1b", "text": "\x00"}]
    ),
    "a number for a text": exchanged(trial=7, id=7),
    "nothing": lambda record: {},
    "a list": lambda record: [record],
    "a text": lambda record: "x",
    "deep": lambda record: {**record, "details": json.loads("[" * 500 + "]" * 500)},
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_line_is_told_or_passed_over(copy: Project, change: str, name: str) -> None:
    folder = unsealed(copy)
    lines = (folder / name).read_bytes().splitlines()
    lines[-1] = json.dumps(CHANGES[change](json.loads(lines[-1]))).encode()
    (folder / name).write_bytes(b"\n".join(lines) + b"\n")
    for words in COMMANDS.values():  # the last takes the run up, and mends what it can
        is_told(copy.cli(*words))


@pytest.mark.parametrize("command", ["report", "judge", "resume"])
@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"null", b"[" * 100_000, b"{" * 10, b"\n", b"1e999"])
def test_rubbish_in_a_file_is_named_with_its_line(copy: Project, data: bytes, command: str) -> None:
    for name in (*FILES[: 2 if command == "judge" else 3], "run.json", "ended.json"):  # it gives verdicts of its own
        folder = copy.folder / ".holdfast" / "runs"
        shutil.rmtree(folder / "0002", ignore_errors=True)
        shutil.copytree(folder / "0001", folder / "0002")
        forget_end(folder / "0002")
        with open(folder / "0002" / name, "ab" if name in FILES else "wb") as file:
            file.write(data + b"\n")
        result = copy.cli(*(word if word != "1" else "2" for word in COMMANDS[command]))
        is_told(result)
        assert result.code == 4
        assert name in result.err


@pytest.mark.parametrize("command", ["report", "judge", "resume"])
def test_strange_files_are_passed_over(copy: Project, command: str) -> None:
    folder = unsealed(copy)
    for name in ("observations-5.jsonl", "verdicts-5.jsonl", "blobs", "traces"):
        if not (folder / name).exists():
            os.mkfifo(folder / name)
    (folder / "verdicts-abc.jsonl").write_text("x")
    (folder / "verdicts-.jsonl").mkdir()
    (folder / "observations-x.jsonl").mkdir()
    (folder / "verdicts-99999999999999999999.jsonl").touch()
    is_told(copy.cli(*COMMANDS[command]))


@pytest.mark.parametrize("command", ["report", "judge", "resume"])
@pytest.mark.parametrize("name", FILES)
def test_a_run_that_was_changed_after_it_ended_is_refused(copy: Project, name: str, command: str) -> None:
    file = rundir(copy) / name
    file.write_bytes(file.read_bytes() + file.read_bytes().splitlines(keepends=True)[-1])
    result = copy.cli(*COMMANDS[command])
    assert result.code == 4
    assert "[run-tampered]" in result.err
    assert name in result.err
    assert "--force" in result.err


def test_a_changed_run_can_be_taken_up_by_force_and_its_report_says_so(copy: Project) -> None:
    file = rundir(copy) / "observations-0.jsonl"
    file.write_bytes(file.read_bytes() + file.read_bytes().splitlines(keepends=True)[-1])
    forced = copy.run("--resume", "1", "--no-preflight", "--force")
    assert "run-forged" in [one["code"] for one in forced.json["warnings"]]
    again = copy.cli("report", "1", "--json")  # it is sealed anew, and remembers
    assert "run-forged" in [one["code"] for one in again.json["warnings"]]


def test_a_run_without_a_seal_is_taken_as_it_is_and_that_is_said(copy: Project) -> None:
    unsealed(copy)
    for command in ("report", "judge"):
        shown = copy.cli(command, "1", "--json")
        assert any("not sealed" in note for note in shown.json["notes"]), command
    taken = copy.run("--resume", "1", "--no-preflight")
    assert "run-forged" in [one["code"] for one in taken.json["warnings"]]
