"""Cases in words: what a verdict of one trial says."""

from __future__ import annotations

from report_cases_sample import alone

from golden_words import Golden
from holdfast.model.observation import Observation, Turn
from holdfast.model.run import CaseRow, ReplicaRow
from holdfast.model.score import Case, Replica
from holdfast.model.verdict import CauseKey, Verdict
from holdfast.report.cases import ROOM, SHOWN, RuleFacts, format_conversation
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


# A conversation of several turns, a line a turn.


def test_a_line_a_turn_and_the_one_that_decided_as_it_is_told(golden: Golden) -> None:
    turns = (Turn("a\nb", "one"), Turn("c", None, 1.0, "timeout", "no answer within 5 ms"), Turn("d", ""))
    first, *rest = format_conversation(turns, decided=0, answer="ONE")
    assert first[1].endswith("→ ONE")
    assert "\n" not in first[1]
    golden(rest)


def test_long_conversations_and_texts_are_cut_and_the_deciding_turn_stays() -> None:
    turns = [Turn(f"q{n}", "x" * (ROOM + 5)) for n in range(40)]
    lines = [*format_conversation(turns, decided=30, answer="here")]
    assert ("turn 31", "q30 → here") in lines
    assert lines[-1][0] == "turn 40"
    assert len(lines) <= SHOWN + 3
    assert [text for label, text in lines if label == "…" and "19" in text]
    assert lines[0][1].endswith("x …")


def test_what_hides_in_a_text_is_shown() -> None:
    ((_, line),) = format_conversation([Turn("\x1b[2J", "\u202e")])
    assert "\x1b" not in line
    assert "\u202e" not in line
