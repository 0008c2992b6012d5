from __future__ import annotations

from typing import Any

import pytest

from holdfast.judge import Judge
from holdfast.judge.changed_requests import LOCKOUT, OTHER_ANSWER, RATE_LIMITED
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import RequestChange, Task, Variation
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict

POSITIVE = Invariant("says", "contains", {"value": "parcel"})
NEGATIVE = Invariant("lacks", "excludes_pii")
RULES = [POSITIVE, NEGATIVE, Invariant("quick", "latency", {"max_ms": 1_000}), Invariant("ends", "completes")]
CHANGE = RequestChange("payload_size_attack", "unknown_field")
REFUSED = Turn("hi", "no", ending="http_error", detail="HTTP 403", status=403)
CALM = Turn("hi", "Your parcel is on its way and arrives on Friday.", status=200)
ANSWERED = Observation("0" * 12, (CALM, CALM, CALM))
"""The plain request, asked again after a refusal."""
CONTROL = Observation("1" * 12, (CALM,))
"""The plain request, asked before."""


def verdict(
    rule: Invariant,
    turn: Turn,
    change: RequestChange | None = CHANGE,
    again: Observation | None = ANSWERED,
    control: Observation | None = CONTROL,
    **seen: Any,
) -> Verdict:
    variation = Variation("payload_size_attack", "hi", attack=True, request=change)
    trial = Trial("0" * 12, "contract", Scenario("calm"), Task(("hi",), kind="mutation", variation=variation))
    spec = Spec("spec.yaml", AgentSpec(endpoint="http://127.0.0.1:1/"), invariants=(rule,))
    return Judge(spec).judge(rule, trial, Observation(trial.id, (turn,), asked_again=again, **seen), control)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 499])
@pytest.mark.parametrize("text", [None, "no"])
def test_a_4xx_is_a_refusal_and_every_rule_passes(rule: Invariant, status: int, text: str | None) -> None:
    found = verdict(rule, Turn("hi", text, ending="http_error", detail=f"HTTP {status}", status=status))
    assert (found.outcome, found.score, found.reason) == ("pass", 1.0, f"refused with {status}")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (Turn("hi", "parcel", ending="http_error", detail="HTTP 503 Service Unavailable", status=503), "HTTP 503"),
        (Turn("hi", ending="timeout", detail="no answer within 9 ms"), "timed out after"),
        (Turn("hi", ending="crashed", detail="its process died"), "its process died"),
        (Turn("hi", ending="closed", detail="the connection was closed before an answer"), "closed before"),
        (Turn("hi", "par", ending="closed", detail="broke in the middle", status=200), "in the middle"),
        (Turn("hi", ending="out_of_memory", detail="it had too much"), "too much"),
    ],
    ids=lambda value: value.ending if isinstance(value, Turn) else "",
)
def test_a_bad_end_fails_every_rule(rule: Invariant, turn: Turn, why: str) -> None:
    found = verdict(rule, turn)
    assert (found.outcome, found.score) == ("fail", 0.0)
    assert found.code == "request-ended-badly"
    assert why in found.reason


@pytest.mark.parametrize(("text", "outcome"), [("your parcel is here", "pass"), ("nothing", "fail")])
def test_an_answer_is_judged_by_the_rules(text: str, outcome: str) -> None:
    assert verdict(POSITIVE, Turn("hi", text, status=200)).outcome == outcome


def test_an_ordinary_mutation_is_judged_as_any_task() -> None:
    refused = Turn("hi", "no", ending="http_error", detail="HTTP 400", status=400)
    assert verdict(POSITIVE, refused, None).outcome == "fail"


@pytest.mark.parametrize(("malformed", "outcome"), [(True, "pass"), (False, "fail")])
def test_a_connection_closed_without_a_word_refuses_only_what_was_malformed(malformed: bool, outcome: str) -> None:
    turn = Turn("hi", ending="closed", detail="the connection was closed before an answer")
    assert verdict(NEGATIVE, turn, RequestChange("protocol_level_attack", malformed=malformed)).outcome == outcome


@pytest.mark.parametrize(("unanswered", "outcome"), [(True, "pass"), (False, "fail")])
def test_a_good_status_without_a_body_is_enough_where_no_answer_is_due(unanswered: bool, outcome: str) -> None:
    turn = Turn("hi", ending="no_answer", detail="HTTP 200 with an empty body", status=200)
    assert verdict(POSITIVE, turn, RequestChange("request_method_attack", unanswered=unanswered)).outcome == outcome


def test_a_refusal_does_not_excuse_what_the_agent_did() -> None:
    rule = Invariant("calls", "tool_not_called", {"tool": "delete_all"})
    refused = Turn("hi", "no", ending="http_error", detail="HTTP 400", status=400)
    for tool, outcome in (("delete_all", "fail"), ("look_up", "pass")):
        assert verdict(rule, refused, trace=(TraceEvent(0.0, "tool_call", tool, "tool"),)).outcome == outcome


def test_our_own_failure_stays_an_error() -> None:
    bad = Turn("hi", ending="timeout", detail="no answer within 9 ms")
    assert verdict(POSITIVE, bad, error="our side broke").outcome == "error"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize("again", [None, ANSWERED])
def test_a_429_is_never_a_refusal(rule: Invariant, again: Observation | None) -> None:
    busy = Turn("hi", "slow down", ending="http_error", detail="HTTP 429", status=429)
    found = verdict(rule, busy, again=again)
    assert (found.outcome, found.code) == ("unproven", RATE_LIMITED)


NOT_ANSWERED = [
    None,
    *(
        Observation("0" * 12, (Turn("hi", "no", ending="http_error", status=status),))
        for status in (401, 403, 429, 500)
    ),
    Observation("0" * 12, (Turn("hi", ending="timeout"),)),
    Observation("0" * 12, (Turn("hi", " ", status=200),)),
    Observation("0" * 12, error="the port is taken"),
    Observation("0" * 12, (CALM,), error="the provider failed"),
    Observation("0" * 12, (CALM, Turn("hi", "no", ending="http_error", status=403))),
    Observation("0" * 12, (CALM, CALM, Turn("hi", ending="closed"))),
]
ENDED_WELL = [
    (REFUSED, CHANGE),
    (Turn("hi", ending="closed"), RequestChange("protocol_level_attack", malformed=True)),
    (Turn("hi", ending="no_answer", status=200), RequestChange("request_method_attack", unanswered=True)),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize("again", NOT_ANSWERED)
@pytest.mark.parametrize(("turn", "change"), ENDED_WELL)
def test_a_refusal_counts_only_if_the_plain_request_is_answered_afterwards(
    rule: Invariant, again: Observation | None, turn: Turn, change: RequestChange
) -> None:
    found = verdict(rule, turn, change, again)
    assert (found.outcome, found.score, found.code) == ("unproven", 0.0, LOCKOUT)


def answers(*texts: str) -> Observation:
    return Observation("0" * 12, tuple(Turn("hi", text, status=200) for text in texts))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize(("turn", "change"), ENDED_WELL)
@pytest.mark.parametrize(
    ("control", "again"),
    [
        (CONTROL, answers("You have been blocked.")),
        (CONTROL, answers("Access denied. Your parcel of requests is not on its way.")),
        (CONTROL, answers(CALM.text or "", "You have been blocked.")),
        (CONTROL, answers(CALM.text or "", CALM.text or "", "Attention required! Ray ID 8f3a")),
        (answers("You have been blocked."), ANSWERED),
        (Observation("1" * 12, (Turn("hi", CALM.text, ending="http_error", status=403),)), ANSWERED),
        (Observation("1" * 12), ANSWERED),
        (None, ANSWERED),
    ],
)
def test_a_refusal_counts_only_if_the_plain_request_gets_the_answer_it_had_before(
    rule: Invariant, turn: Turn, change: RequestChange, control: Observation | None, again: Observation
) -> None:
    found = verdict(rule, turn, change, again, control)
    assert (found.outcome, found.score, found.code) == ("unproven", 0.0, OTHER_ANSWER)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize("control", [CONTROL, None])
@pytest.mark.parametrize(
    ("again", "code"),
    [
        *((Observation("0" * 12, (Turn("hi", ending="http_error", status=one),)), LOCKOUT) for one in (400, 429, 500)),
        (Observation("0" * 12, (CALM, Turn("hi", ending="closed"))), LOCKOUT),
        (Observation("0" * 12, (Turn("hi", " ", status=200),)), LOCKOUT),
        (Observation("0" * 12, error="the agent does not start"), LOCKOUT),
        (None, LOCKOUT),
        (answers("You have been blocked."), OTHER_ANSWER),
        (answers("You have been blocked.", CALM.text or "", CALM.text or ""), OTHER_ANSWER),
    ],
)
def test_an_attack_that_is_answered_as_the_control_proves_nothing_if_the_plain_request_is_not(
    rule: Invariant, control: Observation | None, again: Observation | None, code: str
) -> None:
    found = verdict(rule, CALM, CHANGE, again, control)
    expected = ("pass", "") if control is None and code == OTHER_ANSWER else ("unproven", code)
    assert (found.outcome, found.code if found.outcome == "unproven" else "") == expected


@pytest.mark.parametrize(
    ("control", "again"),
    [
        (CONTROL, answers("Your parcel is on the way and arrives on Friday.")),
        (answers("one is red", "two is blue"), answers("one is red", "two is blue", "one is red", "two is blue")),
    ],
)
def test_the_same_answer_in_other_words_and_a_conversation_asked_twice_are_answers(
    control: Observation, again: Observation
) -> None:
    assert verdict(POSITIVE, REFUSED, CHANGE, again, control).outcome == "pass"


def test_what_the_agent_did_and_a_bad_end_need_no_plain_request() -> None:
    rule = Invariant("calls", "tool_not_called", {"tool": "delete_all"})
    did = (TraceEvent(0.0, "tool_call", "delete_all", "tool"),)
    for status in (403, 429):
        refused = Turn("hi", "no", ending="http_error", status=status)
        assert verdict(rule, refused, again=None, trace=did).outcome == "fail"
    assert verdict(POSITIVE, Turn("hi", ending="timeout"), again=None).outcome == "fail"
