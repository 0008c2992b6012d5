"""docs/versioning.md: what is of a later format is told apart by its number, by every command that reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli import AGENT, CALM, DOWN, MakeProject, Project, contract, python, rule

from holdfast import plugins
from holdfast.errors import PluginError
from holdfast.model.codec import JSON, PROTOCOLS, RECORDING, RUN_DIRECTORY
from holdfast.model.traits import CheckTraits

RULES = [rule("says", value="a source says")]
LATER = f"run 0002 has format 99; this version of Holdfast reads {RUN_DIRECTORY}"
READERS = {
    "show": ("show", "0002"),
    "report": ("report", "0002", "-o", "again.html"),
    "judge": ("judge", "0002"),
    "resume": ("contract", "run", "--resume", "0002"),
    "resume ci": ("ci", "--resume", "0002"),
    "resume run": ("run", "--resume", "0002"),
    "compare": ("compare", "0001", "0002"),
    "compare from": ("compare", "0002", "0001"),
    "promote": ("promote", "0002"),
    "export": ("replay", "export", "--from-report", "0002"),
    "import": ("replay", "import", "0002"),
    "merge": ("merge", ".holdfast/runs/0002"),
}


@pytest.fixture
def two(project: MakeProject) -> Project:
    """Two runs, the second of a format that nobody knows yet."""
    made = project(contract(RULES, [CALM, DOWN], agent=python(isolation="inline")), AGENT)
    assert [made.run().code, made.run().code] == [1, 1]
    later = made.folder / ".holdfast/runs/0002/run.json"
    later.write_text(json.dumps({"format": 99, "id": "0002", "holds": ["what", "is", "not", "known"]}))
    return made


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_of_a_later_format_is_refused_by_all_who_read_it_and_left_as_it_is(two: Project) -> None:
    run = two.folder / ".holdfast/runs/0002"
    before = files(run)
    for name, command in READERS.items():
        told = two.cli(*command)
        assert (told.code, LATER in told.err) == (4, True), (name, told.err)
        assert "[run-too-new]" in told.err, name
    assert files(run) == before
    shown = two.cli("show", "latest", "--json")
    assert (shown.code, shown.json["format"], shown.json["errors"][0]["message"]) == (4, JSON, LATER)


def test_lists_name_it_and_go_on_with_the_others(two: Project) -> None:
    listed = two.cli("runs")
    assert listed.code == 0
    assert LATER in " ".join(listed.out.split())
    rows = {row["id"]: row for row in two.cli("runs", "--json").json["runs"]}
    assert rows["0002"]["note"] == LATER
    assert "note" not in rows["0001"] or not rows["0001"]["note"]
    assert two.cli("trend").code == 0
    assert two.cli("contract", "run", "--lf").code == 1
    assert two.cli("contract", "run", "--cached").code == 1


def test_every_document_has_the_number_first(two: Project) -> None:
    asked = [
        ("contract", "run"), ("contract", "run", "--dry-run"), ("contract", "validate"), ("validate",), ("runs",),
        ("trend",), ("report", "0001"), ("compare", "0001", "0001"), ("show", "0009"), ("ci",),
    ]  # fmt: skip
    for command in asked:
        document = two.cli(*command, "--json").json
        assert next(iter(document.items())) == ("format", JSON), command
    two.write("agent: 7\n")
    assert next(iter(two.cli("contract", "run", "--json").json.items())) == ("format", JSON)


def test_a_report_of_a_later_format_is_refused(two: Project) -> None:
    assert two.cli("report", "0001", "-o", "old.json").code == 0
    document = json.loads(two.read("old.json"))
    (two.folder / "new.json").write_text(json.dumps({"format": JSON + 1, "cells": []}))
    (two.folder / "none.json").write_text(json.dumps({k: v for k, v in document.items() if k != "format"}))
    told = two.cli("replay", "export", "--from-report", "new.json")
    later = f"new.json has format {JSON + 1}; this version of Holdfast reads {JSON}"
    assert (told.code, later in told.err) == (4, True)
    assert two.cli("replay", "export", "--from-report", "none.json").code == 0  # written before there were numbers
    told = two.cli("report", "old.json")
    assert (told.code, ("old.json" in told.err and "[run-unknown]" in told.err)) == (4, True), told.err


def test_a_recording_of_a_later_format_is_refused(two: Project) -> None:
    (two.folder / "calls.jsonl").write_text(json.dumps({"format": RECORDING + 1}) + "\n")
    two.write(contract(RULES, agent={"type": "command", "command": "cat"}))
    told = two.cli("contract", "run", "--replay", "calls.jsonl")
    assert told.code == 4, told.err
    assert f"calls.jsonl:1 has format {RECORDING + 1}; " in told.err
    assert "[recording-unusable]" in told.err


def test_a_spec_of_a_later_version_is_refused_at_its_line(two: Project) -> None:
    two.write({**contract(RULES), "version": "3.0"})
    told = two.cli("contract", "run")
    assert (told.code, ("  version  " in told.err and "[unknown-value]" in told.err)) == (4, True)


def test_a_plug_in_for_a_later_protocol_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        def load(self) -> type:
            return Later

    class Later:
        protocol_version = PROTOCOLS + 1
        traits = CheckTraits(polarity="positive", reads="text")

    monkeypatch.setattr(plugins, "_list_entry_points", lambda family: {"later": Point()})
    with pytest.raises(PluginError, match=f"'later' .* protocol_version {PROTOCOLS + 1}; .* {PROTOCOLS}"):
        plugins.find("checks", "later")
    Later.protocol_version = PROTOCOLS
    assert plugins.find("checks", "later") is Later


def test_a_run_says_its_number(two: Project) -> None:
    assert json.loads(two.read(".holdfast/runs/0001/run.json"))["format"] == RUN_DIRECTORY
