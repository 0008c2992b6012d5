"""Agents that meet nothing are credited with nothing: faults that undo each other, and firings without effect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from quality_run import Result, run_spec

AGENT = '''
calls = []


def look(name):
    """Empty at first, then a record."""
    calls.append(name)
    return [] if len(calls) < 2 else [{"price": 5}]


def price(name):
    return {"price": 5}


def careless(prompt):
    """Would break on any reply but the usual one."""
    return f"It costs {price('kettle')['price']}."


def hasty(prompt):
    """Looks until something is there, and believes it."""
    calls.clear()
    return f"{[look('kettle') for _ in range(2)][-1][0]['price']} euros"
'''


def judged(folder: Path, endpoint: str, tool: str, **weather: Any) -> Result:
    (folder / "planted.py").write_text(AGENT)
    spec = {
        "version": "2.0",
        "agent": {"type": "python", "endpoint": f"planted:{endpoint}", "tools": [f"planted:{tool}"]},
        "golden_prompts": ["What does a kettle cost?"],
        "contract": {
            "name": "Prices",
            "invariants": [{"id": "completes", "type": "completes", "severity": "critical", "description": "d"}],
            "chaos_matrix": [{"name": "calm"}, {"name": "storm", **weather}],
        },
    }
    path = folder / "holdfast.yaml"
    path.write_text(json.dumps(spec))
    return run_spec(path)


def outcomes(result: Result) -> dict[str, str]:
    return {cell.scenario: cell.outcome for cell in result.cells}


def test_faults_that_undo_each_other_prove_nothing(tmp_path: Path) -> None:
    drifts = [{"tool": "price", "mode": "schema_drift", "rename": names} for names in ({"a": "price"}, {"price": "a"})]
    result = judged(tmp_path, "careless", "price", tool_faults=drifts)
    assert outcomes(result) == {"calm": "pass", "storm": "unproven"}
    assert [cell.code for cell in result.cells if cell.chaos] == ["fault-erased"]
    assert result.exit_code == 5


@pytest.mark.parametrize("mode", ["empty", "partial", "schema_drift"])
def test_a_firing_without_effect_does_not_spare_what_comes_next(tmp_path: Path, mode: str) -> None:
    settings = {"keep": 0} if mode == "partial" else {}
    faults = [{"tool": "look", "mode": mode, "times": 1, **settings}]
    result = judged(tmp_path, "hasty", "look", tool_faults=faults)
    assert outcomes(result) == {"calm": "pass", "storm": "fail"}
