"""Cases in words: what a verdict of one trial says."""

from __future__ import annotations

from report_cases_sample import alone

from golden_words import Golden
from holdfast.model.observation import Observation
from holdfast.model.run import CaseRow, ReplicaRow
from holdfast.model.score import Case, Replica
from holdfast.model.verdict import CauseKey, Verdict
from holdfast.report.cases import RuleFacts
from holdfast.report.terminal.failures import explain_case
from holdfast.score.composite import GATE_NOT_FULL


def test_a_gate_that_passed_and_forces_0_says_what_it_needs(golden: Golden) -> None:
    run = alone()
    gate = next(rule.id for rule in run.invariants if rule.gate)
    passed = Verdict("t", gate, "pass", 0.0, "half of it")
    forced = Replica("t", "fail", 0.0, causes=(CauseKey(gate, GATE_NOT_FULL),))
    said = RuleFacts(run).format_reason(passed, ReplicaRow(forced, "p", Observation("t"), (passed,)))
    golden(said)
    by_verdict = ReplicaRow(Replica("t", "pass", 0.0), "p", Observation("t"), (passed,))
    golden(RuleFacts(run).format_reason(passed, by_verdict))


def test_the_terminal_gives_a_reason_that_no_rule_has() -> None:
    replica = Replica("t", "error", None, reason="the conversation ended after 1 of 2 turns")
    passed = Verdict("t", alone().invariants[0].id, "pass", 1.0, "refused with 413")
    row = ReplicaRow(replica, "p", Observation("t"), (passed,))
    case = Case("s", "error", "p", unproven_only=True, replicas=(replica,), reason=replica.reason)
    lines = [line.split() for line in explain_case(alone(), CaseRow(case, [row]))]
    assert [" ".join(words[1:]) for words in lines if words[:1] == ["because"]] == [replica.reason]
