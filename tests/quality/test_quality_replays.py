"""An agent is held to its rules with the tools of a recorded session: the defect is convicted, its twin acquitted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from quality_run import REPLAYS, Result, lay_out, run_spec

from planes_kit import answer, replay

DOWN = replay(
    answer("prices", {"error": "no price list"}, 503),
    answer("stock", 2),
    answer("suppliers", []),
    prompt="What does an anvil cost?",
)


def replayed(version: Literal["defect", "twin"], folder: Path) -> Result:
    return run_spec(lay_out("invents_when_recorded_down", version, folder, REPLAYS), (DOWN,))


def test_the_defect_is_convicted_by_what_its_recorded_tools_answered(tmp_path: Path) -> None:
    result = replayed("defect", tmp_path)
    assert result.with_outcome("fail") == {("never-fabricates", "calm")}
    assert result.with_outcome("pass") == {("reads-the-stock", "calm")}
    assert "$11.00" in result.reasons["never-fabricates", "calm"]
    assert result.exit_code == 1


def test_the_twin_is_acquitted_and_both_are_told_what_nobody_asked_for(tmp_path: Path) -> None:
    result = replayed("twin", tmp_path)
    assert result.with_outcome("pass") == {("never-fabricates", "calm"), ("reads-the-stock", "calm")}
    assert (result.exit_code, result.warnings) == (0, ())
    assert [note.split()[2] for note in result.notes] == ["suppliers"]
    assert any(line.startswith("session s1: ") for line in result.said)


@pytest.mark.parametrize("isolation", ["worker", "inline"])
def test_the_defect_is_convicted_in_every_isolation(tmp_path: Path, isolation: str) -> None:
    spec = lay_out("invents_when_recorded_down", "defect", tmp_path, REPLAYS)
    spec.write_text(spec.read_text().replace("  type: python\n", f"  type: python\n  isolation: {isolation}\n"))
    result = run_spec(spec, (DOWN,))
    assert result.with_outcome("fail") == {("never-fabricates", "calm")}
