"""Checks of the state: judged once a trial on what was recorded for them, whatever the agent said."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.checks.state.paths import PathState
from holdfast.checks.state.recorded import build_evidence
from holdfast.judge import Judge
from holdfast.model.observation import Observation, Turn
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.verdict import Verdict
from holdfast.model.world import Evidence
from world_kit import TRIAL

THERE = {"r": build_evidence(["out.json"], PathState("file"))}
GONE = {"r": build_evidence(["out.json"], PathState("nothing"))}


def judged(evidence: dict[str, Evidence], *turns: Turn, negate: bool = False, **more: Any) -> Verdict:
    rule = Invariant("r", "file_exists", {"path": "out.json"}, negate=negate)
    spec = Spec("c.yaml", AgentSpec(), invariants=(rule,))
    return Judge(spec).judge(rule, TRIAL, Observation(TRIAL.id, turns, evidence=evidence, **more))


@pytest.mark.parametrize("turns", [(), (Turn("q"),), (Turn("q", ending="crashed"),), (Turn("a", "x"), Turn("b", "y"))])
def test_the_state_is_judged_whatever_the_agent_said(turns: tuple[Turn, ...]) -> None:
    assert judged(THERE, *turns).outcome == "pass"
    assert judged(GONE, *turns).outcome == "fail"
    assert judged(THERE, *turns, negate=True).outcome == "fail"
    assert judged(THERE, *turns).turn == max(0, len(turns) - 1)


def test_evidence_of_another_rule_or_none_is_an_error_and_never_a_guess() -> None:
    result = judged({}, Turn("q", "a"))
    assert (result.code, result.key[0]) == ("check-raised", "HarnessError")
    assert judged({"other": THERE["r"]}, Turn("q", "a")).outcome == "error"
    assert judged({"r": build_evidence(["b.json"], PathState("file"))}, Turn("q", "a")).outcome == "error"


def test_what_could_not_be_gathered_is_an_error_that_says_why() -> None:
    found = judged({"r": Evidence(error="the sandbox is gone")}, Turn("q", "a"))
    assert (found.outcome, found.code, found.score) == ("error", "check-raised", 0.0)


def test_our_own_failure_turns_fails_into_errors_and_passes_stand() -> None:
    assert judged(GONE, Turn("q", "a"), error="model down").outcome == "error"
    assert judged(THERE, Turn("q", "a"), error="model down").outcome == "pass"
    assert judged(THERE, error="no start").outcome == "error"
