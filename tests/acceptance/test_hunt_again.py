"""A hunt that is resumed, and options of hunts that cannot do anything."""

from __future__ import annotations

import pytest
from cli import MakeProject, rule, rundir
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


def test_a_budget_that_ends_in_calm_is_named(project: MakeProject) -> None:
    ended = shop(project, rules=[ONCE]).cli("hunt", "--json", "--max-trials", "1")
    assert (ended.code, ended.json["errors"][0]["code"]) == (5, "hunt-budget"), ended.out


def test_a_sweep_that_no_write_can_meet_is_named(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    swept = made.cli("hunt", "--json", "--sweep", "killed")
    assert (swept.code, swept.json["errors"][0]["code"]) == (5, "hunt-no-writes"), swept.out
    unknown = made.cli("hunt", "--json", "--sweep", "bogus")
    assert (unknown.code, unknown.json["errors"][0]["code"]) == (4, "argument-invalid")


@pytest.mark.parametrize(
    "words", [("hunt", "-x"), ("shrink", "7f3a2c91", "-x"), ("map", "-x"), ("map", "--resume", "1")]
)
def test_options_that_would_do_nothing_are_unknown(project: MakeProject, words: tuple[str, ...]) -> None:
    assert shop(project).cli(*words).code == 4


def test_a_script_cannot_be_asked_live(project: MakeProject) -> None:
    made = shop(project, models={"*": {"script": "model.yaml"}})
    (made.folder / "model.yaml").write_text("replies: [{text: hi}]\n")
    refused = made.cli("hunt", "--json", "--confirm-live", "2")
    assert (refused.code, refused.json["errors"][0]["code"]) == (4, "option-inapplicable"), refused.out


def test_the_command_of_a_calm_failure_shows_it_again(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE, rule("cites", "contains", value="source")])
    assert made.cli("hunt").code == 4
    again = made.cli("show", "--json").json["causes"][0]["first"]["again"]
    assert again == "holdfast hunt --seed 0 --replicas 3 --rule cites"
    repeated = made.cli(*again.split()[1:], "--json")
    assert (repeated.code, repeated.json["errors"][0]["code"]) == (4, "hunt-calm-fails")


def test_another_file_with_the_same_contract_does_not_know_the_cause(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    id = made.cli("hunt", "--json", "--max-trials", "60").json["causes"][0]["id"]
    shown = made.cli("hunt", "--cause", id)
    assert (shown.out.count("✘"), "up to 300 trials" in shown.out) == (1, True)
    (made.folder / "other.yaml").write_text(made.read("holdfast.yaml"))
    other = made.cli("hunt", "other.yaml", "--json", "--cause", id)
    assert other.json["errors"][0]["code"] == "cause-unknown"


def test_rules_that_calm_never_judges_leave_nothing_to_start_from(project: MakeProject) -> None:
    made = shop(project, rules=[rule("answers", value="order", when="llm_faults_active")])
    found = made.cli("hunt", "--json")
    assert (found.code, found.json["errors"][0]["code"]) == (5, "hunt-no-rules"), found.out
