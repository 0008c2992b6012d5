"""`holdfast run` on files without a world: cases, composites, exit codes, reports, resuming and judging."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from cli import verdict_line
from files1 import ECHO, project, tell

SPEC = """
version: 1
id: ledger
task: {prompt: "What is the total in {{ params.lang }}?"}
agent: {type: python, endpoint: "bot:answer"}
parallelism: {matrix: {lang: [en, de]}}
invariants:
  cites: {description: "Names its source", gate: true, check: {type: contains, value: source}}
  german: {description: "Speaks German", weight: 0.3, check: {type: contains, value: " de?"}}
"""
TOOLS = 'agent: {type: python, endpoint: "bot:answer", tools: ["bot:search"]}'
SEARCHES = """
def search(query):
    return "Source: the ledger. You asked: " + query


def answer(prompt):
    try:
        return search(prompt)
    except Exception:
        return "no idea about " + prompt
"""
MATRIX = """
chaos_matrix:
  - name: calm
  - name: down
    tool_faults: [{tool: search, mode: error}]
"""


def cases(told: Any) -> dict[str, tuple[str, float | None]]:
    found = told.json["parts"]["scenario"]["cases"]
    return {f"{c['scenario']} {c['params']['lang']}": (c["status"], c["composite"]) for c in found}


def test_cases_and_composites_without_a_matrix(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    told = tell(tmp_path, "run", "--json")
    assert told.code == 1, told.err
    assert cases(told) == {"calm en": ("fail", pytest.approx(1 / 1.3)), "calm de": ("pass", 1.0)}
    assert (told.json["score"], told.json["passed"], list(told.json["parts"])) == (None, False, ["scenario"])
    (replica,) = told.json["parts"]["scenario"]["cases"][0]["replicas"]
    verdicts = {v["invariant"]: (v["outcome"], v["score"]) for v in replica["verdicts"]}
    assert verdicts == {"cites": ("pass", 1.0), "german": ("fail", 0.0)}
    again = replica["reproducer"]
    assert again["parameters"] == {"lang": "en"}
    assert again["command"] == f"holdfast run --seed 0 --trial {replica['trial']}"


def test_the_command_of_a_failure_gives_that_failure(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    first = tell(tmp_path, "run", "--json").json["parts"]["scenario"]["cases"][0]
    words = first["replicas"][0]["reproducer"]["command"].split()[1:]
    told = tell(tmp_path, *words, "--json")
    assert told.code == 1
    (again,) = told.json["parts"]["scenario"]["cases"]
    assert (again["status"], again["replicas"][0]["verdicts"]) == ("fail", first["replicas"][0]["verdicts"])


def test_a_threshold_lets_a_flaw_pass_and_a_gate_never(tmp_path: Path) -> None:
    project(tmp_path, SPEC + "scoring: {pass_threshold: 0.7}\n")
    told = tell(tmp_path, "run")
    assert told.code == 0
    assert "✔ case calm [lang=en] passed, " in told.out
    project(tmp_path, SPEC + "scoring: {pass_threshold: 0.0001}\n", ECHO.replace("Source", "Sauce"))
    told = tell(tmp_path, "run", "--json")
    assert set(cases(told).values()) == {("fail", 0.0)}


def test_a_matrix_gives_every_case_in_every_scenario_and_the_cells(tmp_path: Path) -> None:
    spec = SPEC.replace('agent: {type: python, endpoint: "bot:answer"}', TOOLS) + MATRIX
    project(tmp_path, spec + "scoring: {pass_threshold: 0.7}\n", SEARCHES)
    told = tell(tmp_path, "run", "--json")
    assert told.code == 1
    status = {name: found[0] for name, found in cases(told).items()}
    assert status == {"calm en": "pass", "calm de": "pass", "down en": "fail", "down de": "fail"}
    cells = told.json["parts"]["contract"]["cells"]
    assert {(c["invariant"], c["scenario"]) for c in cells} == {
        (rule, scenario) for rule in ("cites", "german") for scenario in ("calm", "down")
    }
    assert not told.json["parts"]["contract"]["passed"]
    alone = tell(tmp_path, "contract", "run", "--json").json
    assert list(alone["parts"]) == ["contract"]
    assert alone["score"] == told.json["score"]


BESIDE = SPEC + "chaos_matrix: [{name: calm}]\nscoring: {pass_threshold: 0.5%s}\n"
"""Both cases pass; the cell `german` fails, and the score is 87.50."""


def test_the_cases_decide_and_the_matrix_stands_beside_them(tmp_path: Path) -> None:
    project(tmp_path, BESIDE % "")
    told = tell(tmp_path, "run", "--json")
    assert {status for status, _ in cases(told).values()} == {"pass"}
    assert (told.code, told.json["parts"]["scenario"]["passed"], told.json["passed"]) == (0, True, True)
    last = verdict_line(tell(tmp_path, "run").out)
    assert last.startswith("PASS  ")
    assert ", 1 failed cell " in last
    alone = tell(tmp_path, "contract", "run")
    assert (alone.code, verdict_line(alone.out).split(" · ")[0]) == (1, "FAIL  1 cell failed")


@pytest.mark.parametrize(
    ("spec", "args", "code", "said"),
    [
        (BESIDE % "", ["--min-score", "87.50"], 0, "every case passed, 1 failed cell within the minimum 87.5"),
        (BESIDE % "", ["--min-score", "90"], 1, "score 87.50 is below the minimum 90"),
        (BESIDE % ", min_score: 90", [], 1, "score 87.50 is below the minimum 90"),
        (BESIDE.replace("weight: 0.3", "weight: 0.3, severity: critical") % "", [], 1, "1 critical cell failed"),
    ],
)
def test_the_matrix_decides_by_a_minimum_and_by_critical_cells(
    tmp_path: Path, spec: str, args: list[str], code: int, said: str
) -> None:
    project(tmp_path, spec)
    told = tell(tmp_path, "run", *args)
    assert (told.code, verdict_line(told.out).split("  ", 1)[1].split(" · ")[0]) == (code, said)


def test_an_error_of_ours_is_3_and_never_a_pass(tmp_path: Path) -> None:
    spec = SPEC.replace('"bot:answer"', '"bot:answer", reset_function: "bot:reset"')
    project(tmp_path, spec, ECHO + "def reset(): raise OSError('no reset')\n")
    told = tell(tmp_path, "run", "--json", "--no-preflight")
    assert told.code == 3, told.out
    assert set(cases(told).values()) == {("error", None)}


@pytest.mark.parametrize(("how", "status"), [("any", "pass"), ("all", "fail"), ("majority", "fail"), ("mean", "pass")])
def test_replicas_combine_as_the_file_says_and_disagreement_is_flaky(tmp_path: Path, how: str, status: str) -> None:
    agent = "import os\nprint('source', 'in de?' if os.environ['HOLDFAST_REPLICA'] == '0' else 'in en?')\n"
    spec = SPEC.replace("parallelism: {matrix: {lang: [en, de]}}", "parallelism: {replicas: 2, matrix: {lang: [en]}}")
    spec = spec.replace("python", "command").replace('endpoint: "bot:answer"', f'command: "{sys.executable} bot.py"')
    project(tmp_path, spec + f"scoring: {{replica_aggregation: {how}, pass_threshold: 0.85}}\n", agent)
    told = tell(tmp_path, "run", "--json")
    (case,) = told.json["parts"]["scenario"]["cases"]
    assert (case["status"], case["flaky"], len(case["replicas"])) == (status, True, 2), told.out
    assert case["composite"] == pytest.approx((1 + 1 / 1.3) / 2)


def test_every_report_has_the_cases(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    told = tell(tmp_path, "run", "-o", "r.json", "-o", "r.xml", "-o", "r.md", "-o", "r.html")
    assert "✘ fail   0.769      calm [lang=en]" in told.out
    assert "because    ✘ german: ' de?' " in told.out
    assert [c["status"] for c in json.loads((tmp_path / "r.json").read_text())["parts"]["scenario"]["cases"]] == [
        "fail",
        "pass",
    ]
    suite = ET.parse(tmp_path / "r.xml").getroot().find("testsuite")
    assert suite is not None
    assert [case.find("failure") is not None for case in suite.iter("testcase")] == [True, False]
    assert "| ✘ fail | 0.769 |" in (tmp_path / "r.md").read_text()
    page = (tmp_path / "r.html").read_text()
    assert "calm [lang=en]" in page
    assert 'id="matrix"' not in page
    for suffix in ("json", "xml", "md", "html"):
        assert tell(tmp_path, "report", "0001", "-o", f"later.{suffix}").code == 0
        assert (tmp_path / f"later.{suffix}").read_text() == (tmp_path / f"r.{suffix}").read_text()


def test_a_stored_run_is_judged_by_other_rules(tmp_path: Path) -> None:
    path = project(tmp_path, SPEC)
    tell(tmp_path, "run")
    path.write_text(path.read_text().replace('" de?"', '"total"'))
    told = tell(tmp_path, "judge", "0001", "-c", path.name, "--json")
    assert (told.code, cases(told)) == (0, {"calm en": ("pass", 1.0), "calm de": ("pass", 1.0)})


def test_a_run_that_is_judged_anew_knows_the_faults_that_were_met(tmp_path: Path) -> None:
    spec = SPEC.replace('agent: {type: python, endpoint: "bot:answer"}', TOOLS) + MATRIX
    project(tmp_path, spec.replace("value: source", "value: idea"), SEARCHES.replace("the ledger", "an idea"))
    first = tell(tmp_path, "run", "--json")
    assert cases(first)["down de"][0] == "pass", first.err
    assert cases(tell(tmp_path, "judge", "1", "--json")) == cases(first)


def test_a_run_is_resumed_by_the_command_that_began_it(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    tell(tmp_path, "run")
    refused = tell(tmp_path, "contract", "run", "--resume", "0001")
    assert (refused.code, "holdfast run --resume 0001" in refused.err) == (4, True)
    assert tell(tmp_path, "run", "--resume", "0001").code == 1
    backend = tell(tmp_path, "run", "--resume", "0001", "--backend", "process")
    assert (backend.code, "--backend" in backend.err) == (4, True)


def test_golden_prompts_with_a_list_of_rules_are_mutated(tmp_path: Path) -> None:
    spec = 'agent: {type: python, endpoint: "bot:answer"}\ngolden_prompts: [x]\n'
    project(tmp_path, spec + "mutations: {types: [noise], count: 2}\ninvariants: [{type: output_not_empty}]\n")
    told = tell(tmp_path, "run", "--json")
    part = told.json["parts"]["mutation"]
    assert (told.code, part["robustness"], part["types"][0]["type"]) == (0, 1.0, "noise")


def test_a_minimum_score_needs_a_matrix(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    told = tell(tmp_path, "run", "--min-score", "50")
    assert (told.code, "chaos_matrix" in told.err) == (4, True)


def test_options_of_a_world_that_is_not_there_are_told(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    told = tell(tmp_path, "run", "--backend", "process", "--keep", "--strict-world")
    assert [option for option in ("--backend", "--keep", "--strict-world") if option not in told.err] == []


def test_verify_asks_a_scenario_too(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    assert "the ledger" in tell(tmp_path, "verify").out


UNCALLED = SEARCHES.replace("return search(prompt)", 'return "source, de?"')


def test_a_case_whose_fault_was_never_met_has_not_passed(tmp_path: Path) -> None:
    project(tmp_path, SPEC.replace('agent: {type: python, endpoint: "bot:answer"}', TOOLS) + MATRIX, UNCALLED)
    told = tell(tmp_path, "run", "--json")
    assert told.code == 5, told.err
    scenario = told.json["parts"]["scenario"]
    assert (scenario["passed"], scenario["unproven_cases"]) == (False, 2)
    found = {case["scenario"]: case for case in scenario["cases"] if case["params"]["lang"] == "en"}
    assert (found["calm"]["status"], found["calm"]["unproven"], found["calm"]["composite"]) == ("pass", 0, 1.0)
    down = found["down"]
    assert (down["status"], down["unproven"], down["unproven_only"], down["composite"]) == ("error", 2, True, None)
    (replica,) = down["replicas"]
    assert replica["status"] == "error"
    assert {(v["outcome"], v["score"]) for v in replica["verdicts"]} == {("unproven", 0.0)}
    assert {v["code"] for v in replica["verdicts"]} == {"fault-unmet"}
    allowed = tell(tmp_path, "run", "--json", "--allow-vacuous")
    assert (allowed.code, allowed.json["parts"]["scenario"]["passed"]) == (0, False)
    told = tell(tmp_path, "run", "-o", "run.xml")
    assert "? 2 cases are unproven\n  cases      down [lang=en], down [lang=de]\n" in told.out
    suites = ET.parse(tmp_path / "run.xml").getroot()
    skipped = [
        one for one in suites.iter("testcase") if one.get("classname") == "cases" and one.find("skipped") is not None
    ]
    assert [one.get("name") for one in skipped] == ["down [lang=en]", "down [lang=de]"]
