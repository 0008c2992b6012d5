"""`holdfast judge` and `holdfast report` agree with the run, with today's values, and with the pages that they name."""

from __future__ import annotations

import re

from cli import MakeProject, contract, rule, rundir

RULES = [rule("a", value="source", severity="low"), rule("b", value="unicorn", severity="low")]


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
    assert re.search(r"^FAIL .*runs/0001/report\.html$", told, re.M)


def test_a_run_without_a_page_gets_none_by_being_judged(project: MakeProject) -> None:
    made = project(contract(RULES))
    made.run()
    made.cli("judge", "1", "--min-score", "10")
    assert not (rundir(made) / "report.html").exists()
    assert "report" not in made.cli("report", "1").out.splitlines()[-1]
