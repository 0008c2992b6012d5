"""A hunt that is resumed, and options of hunts that cannot do anything."""

from __future__ import annotations

from cli import MakeProject, rundir
from test_hunt import ONCE, shop


def test_a_hunt_that_is_resumed_keeps_its_budget_and_its_seal(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    first = made.cli("hunt", "--json", "--max-trials", "12")
    again = made.cli("hunt", "--json", "--resume", "0001")
    assert (again.code, again.json) == (first.code, first.json), again.err
    assert made.cli("show", "0001").code == 0
    invented = (rundir(made) / "scenarios.jsonl").read_text().splitlines()
    more = made.cli("hunt", "--json", "--resume", "0001", "--max-trials", "16").json
    assert (more["stopped"], more["trials"]) == ("trials", 16)
    assert made.cli("hunt", "--json", "--resume", "0001").json["trials"] == 16
    assert made.cli("show", "0001").code == 0
    lines = (rundir(made) / "scenarios.jsonl").read_text().splitlines()
    assert lines[: len(invented)] == invented
    assert len(lines) == len(set(lines))
