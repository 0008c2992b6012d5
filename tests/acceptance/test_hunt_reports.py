"""A stored hunt says in every report what the hunt said."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

from cli import MakeProject, rundir
from test_hunt import ONCE, shop


def test_every_report_of_a_hunt_has_its_verdict_and_its_causes(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    found = made.cli("hunt", "--json", "--max-trials", "60")
    (cause,) = found.json["causes"]
    report = made.cli("report", "latest", "-o", "x.json", "-o", "x.xml", "-o", "x.md", "-o", "x.sarif", "-o", "x.html")
    assert report.code == 0, report.err
    said = json.loads(made.read("x.json"))
    assert (said["passed"], said["exit_code"], said["score"]) == (False, 1, None)
    assert said["parts"]["hunt"]["reason_codes"] == ["hunt-cause"]
    (shown,) = said["causes"]
    assert (shown["part"], shown["rules"], shown["code"]) == ("hunt", ["once"], "done-twice")
    assert shown["cells"][0]["scenario"] == cause["id"]
    assert shown["first"] == {"trial": cause["trial"], "again": f"holdfast hunt holdfast.yaml --cause {cause['id']}"}
    root = ET.fromstring(made.read("x.xml"))
    assert (root.get("failures"), root.get("errors")) == ("1", "0")
    assert made.read("x.md").startswith("## ✘ FAIL")
    assert cause["id"] in made.read("x.md")
    assert [one["ruleId"] for one in json.loads(made.read("x.sarif"))["runs"][0]["results"]] == ["once"]
    assert cause["id"] in made.read("x.html")
    assert cause["id"] in (rundir(made) / "report.html").read_text()
    assert json.loads((rundir(made) / "score.json").read_bytes())["exit_code"] == 1
    assert "FAIL" in made.cli("show").out
    assert cause["id"] in made.cli("show").out
    (row,) = made.cli("runs", "--json").json["runs"]
    assert (row["part"], row["passed"], row["exit_code"], row["score"]) == ("hunt", False, 1, None)
    assert row["trials"] == found.json["trials"]


def test_ci_and_show_explain_the_known_causes_that_fail(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    (cause,) = made.cli("hunt", "--json", "--max-trials", "60").json["causes"]
    ended = made.cli("ci")
    assert ended.code == 1
    assert ended.out.count("✘ once") == 1
    assert ended.out.count(f"holdfast hunt holdfast.yaml --cause {cause['id']}") == 1
    shown = made.cli("show").out
    assert shown.count(f"holdfast hunt holdfast.yaml --cause {cause['id']}") == 1
    verdict = next(line for line in shown.splitlines() if line.startswith("FAIL"))
    assert verdict == f"FAIL  hunt: known cause {cause['id']} breaks once · overall 100.00"


def test_a_hunt_that_left_faults_untried_passed_nowhere(project: MakeProject) -> None:
    made = shop(project, attempts=1, rules=[ONCE])
    assert made.cli("hunt", "--json", "--max-trials", "6").code == 5
    shown = made.cli("show", "--json").json
    assert (shown["passed"], shown["exit_code"], shown["score"]) == (False, 5, None)
    assert shown["parts"]["hunt"]["reason_codes"] == ["hunt-open"]


def test_a_step_summary_shows_the_hunt_once(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    made.cli("hunt", "--max-trials", "60", env={"GITHUB_STEP_SUMMARY": str(made.folder / "step.md")})
    assert made.read("step.md").count("## ") == 1
    assert made.read("step.md").startswith("## ✘ FAIL")
