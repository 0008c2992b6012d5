"""-x, -k and --lf in `holdfast run`, where cases decide and most cells do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
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
    last = tell(tmp_path, "run", "-x", "-j", "1").out.splitlines()[-1]
    assert last.startswith("FAIL")
    assert "1 of 3 trials was not run" in last


def test_x_of_a_contract_says_so_too_and_can_be_gone_on_with(tmp_path: Path) -> None:
    first = tell(written(tmp_path), "contract", "run", "-x", "-j", "1")
    assert (first.code, "1 of 3 trials was not run" in first.out) == (1, True)
    assert "go on with it: holdfast contract run --resume 0001" in first.out
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
