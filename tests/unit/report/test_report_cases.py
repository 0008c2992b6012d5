"""Cases in words: what a verdict of one trial says."""

from __future__ import annotations

from report_cases_sample import alone

from holdfast.model.observation import Observation
from holdfast.model.run import ReplicaRow
from holdfast.model.score import Replica
from holdfast.model.verdict import Verdict
from holdfast.report.cases import RuleFacts


def test_a_gate_that_passed_and_forces_0_says_what_it_needs() -> None:
    run = alone()
    gate = next(rule.id for rule in run.invariants if rule.gate)
    passed = Verdict("t", gate, "pass", 0.0, "half of it")
    forced = Replica("t", "fail", 0.0, reason=f"gate {gate} needs 1.0; scored 0: half of it")
    said = RuleFacts(run).reason(passed, ReplicaRow(forced, "p", Observation("t"), (passed,)))
    assert said == f"{gate} (gate needs 1.0; scored 0): half of it"
    by_verdict = ReplicaRow(Replica("t", "pass", 0.0), "p", Observation("t"), (passed,))
    assert RuleFacts(run).reason(passed, by_verdict) == f"{gate} (gate), scored 0: half of it"
