"""Each planted defect is convicted by the right rule in the right scenario, and its repaired twin acquitted."""

from __future__ import annotations

from pathlib import Path

import pytest
from quality_cases import CASES, Case
from quality_run import AGENTS, lay_out, run_spec

from holdfast.model.codes import STATEFUL

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_case
def test_the_defect_is_convicted_there_and_only_there(case: Case, tmp_path: Path) -> None:
    result = run_spec(lay_out(case.name, "defect", tmp_path))
    assert result.with_outcome("fail") == set(case.convicted)
    assert result.with_outcome("error") == set()
    assert result.exit_code == 1
    for cell, words in case.convicted.items():
        assert words in result.reasons[cell]
    if case.differs_in_calm:
        (warning,) = result.warnings
        assert (warning.code, "it is 18 degrees." in warning.text) == ("answers-differ", True)
    else:
        assert [one.code for one in result.warnings] == ([STATEFUL] if case.stateful else [])


@every_case
def test_the_twin_is_acquitted_and_met_every_fault(case: Case, tmp_path: Path) -> None:
    result = run_spec(lay_out(case.name, "twin", tmp_path))
    assert result.with_outcome("fail", "error", "unproven") == set()
    assert result.with_outcome("pass") >= set(case.convicted)
    assert all(cell.met for cell in result.cells if cell.chaos and cell.outcome == "pass")
    assert result.exit_code == 0
    assert result.warnings == ()


def test_every_agent_of_the_folder_is_a_case() -> None:
    names = {case.name for case in CASES}
    assert {path.stem for path in AGENTS.glob("*.py")} == names
    assert {path.stem for path in AGENTS.glob("*.yaml")} == names
    assert len(names) >= 12
