"""`holdfast judge` and `holdfast report` agree with the run, with today's values, and with the pages that they name."""

from __future__ import annotations

import re

import pytest
from cli import CALM, DOWN, MakeProject, contract, facts, rule, rundir

RULES = [rule("cites", value="source", severity="low"), rule("b", value="unicorn", severity="low")]


def timed(max_ms: object = "${MS}") -> dict[str, object]:
    return contract([rule("lat", "latency", max_ms=max_ms)])


# -- variables ---------------------------------------------------------------------------------------
def test_a_file_that_is_given_is_read_with_the_variables_of_today(project: MakeProject) -> None:
    made = project(timed())
    assert made.run(env={"MS": "60000"}).code == 0
    assert made.cli("judge", "1", "--json", env={"MS": "0.000001"}).cell["outcome"] == "pass"
    again = made.cli("judge", "1", "-c", "holdfast.yaml", "--json", env={"MS": "0.000001"})
    assert (again.code, again.cell["outcome"]) == (1, "fail")


def test_a_variable_that_is_not_set_today_is_missed_only_where_the_file_is_given(project: MakeProject) -> None:
    made = project(timed())
    made.run(env={"MS": "60000"})
    assert made.cli("judge", "1").code == 0
    refused = made.cli("judge", "1", "-c", "holdfast.yaml")
    assert refused.code == 4
    assert "MS" in refused.err


# -- pages -------------------------------------------------------------------------------------------
def test_a_judging_leaves_the_page_of_the_run_and_writes_its_own(project: MakeProject) -> None:
    made = project(contract(RULES))
    assert made.show().code == 1
    page = (rundir(made) / "report.html").read_bytes()
    for number in (2, 3):
        judged = made.cli("judge", "1", "--min-score", "10")
        assert judged.code == 0
        assert f".holdfast/runs/0001/report-judged-{number}.html" in judged.out
        assert b"PASS" in (rundir(made) / f"report-judged-{number}.html").read_bytes()
    assert (rundir(made) / "report.html").read_bytes() == page
    told = made.cli("report", "1").out
    assert re.search(r"^FAIL .*\n +\.holdfast/runs/0001/report\.html ", told, re.M)


def test_a_run_without_a_page_gets_none_by_being_judged(project: MakeProject) -> None:
    made = project(contract(RULES))
    made.run()
    made.cli("judge", "1", "--min-score", "10")
    assert not (rundir(made) / "report.html").exists()
    assert "report" not in made.cli("report", "1").out.splitlines()[-1]


# -- a part of the contract --------------------------------------------------------------------------
@pytest.mark.parametrize("isolation", ["cell", "scenario"])
@pytest.mark.parametrize(
    "part",
    [("-k", "calm"), ("-k", "first"), ("-k", "cites and down"), ("--invariant", "c*"), ("--scenario", "down")],
)
def test_a_part_is_judged_alike_with_and_without_its_own_file(
    project: MakeProject, part: tuple[str, str], isolation: str
) -> None:
    rules = [rule("cites", value="source"), rule("other", value="source")]
    made = project(contract(rules, [CALM, DOWN], prompts=("first", "second"), isolation=isolation))
    first = made.run(*part)
    alone = made.cli("judge", "1", "--json")
    named = made.cli("judge", "1", "-c", "holdfast.yaml", "--json")
    assert (first.code, alone.code, named.code) == (0, 0, 0)
    assert facts(first) == facts(alone) == facts(named)


@pytest.mark.parametrize("option", ["--trial", "--lf"])
def test_single_trials_and_what_failed_are_judged_alike(project: MakeProject, option: str) -> None:
    made = project(contract(RULES, [CALM, DOWN], prompts=("first", "second")))
    whole = made.run()
    chosen = (option, whole.cells["b", "calm"]["trials"][0]["id"]) if option == "--trial" else (option,)
    first = made.run(*chosen)
    made.write(made.read("holdfast.yaml") + "# edited\n")
    named = made.cli("judge", "2", "-c", "holdfast.yaml", "--json")
    assert (named.code, facts(named)) == (first.code, facts(first))


def test_other_rules_of_the_same_names_are_judged_on_the_same_part(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM, DOWN]))
    made.run("-k", "calm and cites")
    made.write(contract([rule("cites", value="nothing like it"), RULES[1]], [CALM, DOWN]))
    again = made.cli("judge", "1", "-c", "holdfast.yaml", "--json")
    assert again.outcomes == {("cites", "calm"): "fail"}
