"""-x, -k and --lf in `holdfast run`, where cases decide and most cells do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli import verdict_line
from files1 import project, tell

AGENT = """
import os
def find(query):
    return "found"
def answer(prompt):
    wrong = os.environ.get("PARAM_KIND") == "odd"
    try:
        return "sent unsafe" if wrong else "sent " + find(prompt)
    except PermissionError:
        return "unsafe"
    except Exception as failure:
        return "unsafe" if "429" in str(failure) else "failed"
"""
SPEC = """
version: 1
id: mapped
agent: {type: python, endpoint: "bot:answer", tools: ["bot:find"]}
task: {prompt: send}
invariants:
  ends: {description: d, check: {type: completes}}
  safe: {description: d, GATEcheck: {type: excludes_pattern, patterns: [unsafe]}}
  sent: {description: d, check: {type: contains, value: sent}}
scoring: {pass_threshold: 0.6}
PARAMSchaos_matrix:
  - name: calm
  - {name: down, tool_faults: [{tool: find, mode: error, error_code: 503}]}
  - {name: limited, tool_faults: [{tool: find, mode: error, error_code: 429}]}
"""
CALM_ONLY = SPEC.partition("chaos_matrix")[0].replace("value: sent", "value: zzz")


def written(folder: Path, gate: str = "gate: true, ", params: str = "", spec: str = SPEC) -> Path:
    section = f"parallelism: {{matrix: {{kind: [{params}]}}}}\n" if params else ""
    project(folder, spec.replace("GATE", gate).replace("PARAMS", section), AGENT)
    return folder


def told(folder: Path, *options: str) -> tuple[int, Any]:
    found = tell(folder, "run", "--json", "-j", "1", *options)
    assert found.out, found.err
    return found.code, found.json


def cases(report: Any) -> dict[str, str]:
    return {case["scenario"]: case["status"] for case in report["parts"]["scenario"]["cases"]}


def cells(report: Any) -> dict[tuple[str, str], str]:
    return {(c["invariant"], c["scenario"]): c["outcome"] for c in report["parts"]["contract"]["cells"]}


# -- -x ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("gate", ["gate: true, ", ""])
def test_x_goes_on_past_a_cell_that_decides_nothing(tmp_path: Path, gate: str) -> None:
    code, report = told(written(tmp_path, gate), "-x")
    assert (code, cases(report)) == (1, {"calm": "pass", "down": "pass", "limited": "fail"})
    assert report["complete"] is True


def test_x_stops_at_a_case_that_failed_and_says_what_was_not_run(tmp_path: Path) -> None:
    spec = SPEC.replace("pass_threshold: 0.6", "pass_threshold: 1.0")
    code, report = told(written(tmp_path, spec=spec), "-x")
    assert (code, cases(report)) == (1, {"calm": "pass", "down": "fail"})
    assert report["complete"] is False
    last = verdict_line(tell(tmp_path, "run", "-x", "-j", "1").out)
    assert last.startswith("FAIL")
    assert "1 of 3 trials " in last


def test_x_of_a_contract_says_so_too_and_can_be_gone_on_with(tmp_path: Path) -> None:
    first = tell(written(tmp_path), "contract", "run", "-x", "-j", "1")
    assert (first.code, "1 of 3 trials " in first.out) == (1, True)
    assert "--resume 0001" in first.out
    judged = tell(tmp_path, "judge", "0001", "--json")
    assert (judged.code, judged.json["complete"]) == (1, False)
    again = tell(tmp_path, "contract", "run", "--resume", "0001", "--json")
    assert (again.code, again.json["complete"]) == (1, True)


def test_x_of_a_part_waits_for_replicas_that_may_mend_a_case(tmp_path: Path) -> None:
    agent = "import os\ndef answer(prompt):\n    return 'sent' if os.environ['HOLDFAST_REPLICA'] == '1' else 'unsafe'\n"
    scoring = "scoring: {replica_aggregation: any, "
    spec = (
        CALM_ONLY.replace("scoring: {", scoring)
        .replace("value: zzz", "value: sent")
        .replace(', tools: ["bot:find"]', "")
    )
    (written(tmp_path, gate="", spec=spec) / "bot.py").write_text(agent)
    for part in ([], ["-k", "send"]):
        code, report = told(tmp_path, "-x", "--replicas", "2", *part)
        assert (code, report["complete"], set(cases(report).values())) == (0, True, {"pass"})


# -- -k and --invariant -----------------------------------------------------------------------------
@pytest.mark.parametrize("option", ["-k", "--invariant"])
@pytest.mark.parametrize("spec", [SPEC, CALM_ONLY])
def test_a_part_of_its_rules_decides_no_case(tmp_path: Path, option: str, spec: str) -> None:
    written(tmp_path, spec=spec)
    code, report = told(tmp_path, option, "ends")
    assert (code, cases(report)) == (0, {})
    assert set(cells(report).values()) == {"pass"}
    assert [note for note in report["notes"] if "no case" in note]
    code, report = told(tmp_path, option, "sent", "-o", "r.xml")
    assert (code, cases(report), "fail" in cells(report).values()) == (1, {}, True)
    assert "<failure" in (tmp_path / "r.xml").read_text()
    assert tell(tmp_path, "report", "0002", "--json").json["exit_code"] == 1
    assert tell(tmp_path, "judge", "0002").code == 1


@pytest.mark.parametrize("part", [("-k", "down"), ("-k", "ends or safe or sent", "--scenario", "down")])
def test_a_case_that_is_chosen_whole_is_decided_as_in_a_whole_run(tmp_path: Path, part: tuple[str, ...]) -> None:
    code, report = told(written(tmp_path), *part)
    assert (code, cases(report)) == (0, {"down": "pass"})


# -- --lf -------------------------------------------------------------------------------------------
def test_lf_runs_whole_cases_that_failed_and_no_others(tmp_path: Path) -> None:
    assert told(written(tmp_path))[0] == 1
    code, report = told(tmp_path, "--lf")
    assert (code, cases(report)) == (1, {"limited": "fail"})
    assert {rule for rule, _ in cells(report)} == {"ends", "safe", "sent"}


def test_lf_after_a_run_that_held_runs_everything_whatever_its_cells(tmp_path: Path) -> None:
    written(tmp_path, spec=SPEC.rpartition("  - {name: limited")[0])
    assert told(tmp_path)[0] == 0
    code, report = told(tmp_path, "--lf")
    assert (code, set(cases(report))) == (0, {"calm", "down"})


def test_lf_knows_params_apart(tmp_path: Path) -> None:
    assert told(written(tmp_path, params="even, odd", spec=SPEC.partition("  - {name: down")[0]))[0] == 1
    _, report = told(tmp_path, "--lf")
    assert [case["params"] for case in report["parts"]["scenario"]["cases"]] == [{"kind": "odd"}]


def test_lf_after_a_cell_that_failed_asks_its_case_again(tmp_path: Path) -> None:
    assert told(written(tmp_path), "-k", "sent and down")[0] == 1
    code, report = told(tmp_path, "--lf")
    assert (code, cases(report)) == (0, {"down": "pass"})


@pytest.mark.parametrize(("part", "said"), [(("-k", "calm"), "-k 'calm'"), (("--scenario", "calm"), "selected")])
def test_lf_of_what_did_not_fail_says_so(tmp_path: Path, part: tuple[str, ...], said: str) -> None:
    assert told(written(tmp_path))[0] == 1
    found = tell(tmp_path, "run", "--lf", *part)
    assert (found.code, "[nothing-selected]" in found.err, said in found.err) == (4, True, True)
