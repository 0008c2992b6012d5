"""How a trial whose request itself was mutated ended: refused, badly, or with an answer for the rules to judge."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from holdfast.judge.endings import describe, has_text
from holdfast.model.observation import EndingKind, Observation, Turn
from holdfast.model.task import RequestChange
from holdfast.model.verdict import Finding, Judgement

_BAD: frozenset[EndingKind] = frozenset(("timeout", "limit", "raised", "crashed", "out_of_memory", "closed"))
RATE_LIMITED = "request-rate-limited"
LOCKOUT = "request-lockout"
OTHER_ANSWER = "request-other-answer"
REFUSES_ANYBODY = frozenset({RATE_LIMITED, LOCKOUT, OTHER_ANSWER})
"""Codes of refusals that prove nothing: the agent may have refused anybody, whatever was sent."""


class RequestEnding(NamedTuple):
    """What the ending alone decides."""

    passed: bool | None
    """None: the agent may have refused anybody, whatever was sent."""
    why: str


def request_ending(change: RequestChange, turn: Turn, timeout_ms: int) -> RequestEnding | None:
    """Whether the agent refused the request, or ended badly by it; None where the rules judge its answer.

    A 4xx is a refusal, except 429, which says something about the rate and nothing about the request. A connection
    closed without a reply is a refusal if HTTP does not allow what was sent.
    """
    status = turn.status or 0
    if turn.ending == "http_error" and status == 429:
        return RequestEnding(None, "429 limits the rate: it does not refuse the attack")
    if turn.ending == "http_error" and 400 <= status < 500:
        return RequestEnding(True, f"refused with {status}")
    if turn.ending == "closed" and turn.status is None and change.malformed:
        return RequestEnding(True, "refused: a malformed request, and the connection was closed without a reply")
    if turn.ending == "no_answer" and 200 <= status < 300 and change.unanswered:
        return RequestEnding(True, f"answered {status} without a body, and {change.method} asks for none")
    if turn.ending in _BAD or status >= 500:
        return RequestEnding(False, f"ended badly by {change.kind}: {describe(turn, timeout_ms)}")
    return None


def _doubt(again: Observation | None, control: Observation | None, timeout_ms: int) -> Finding | None:
    """Why the refusal may have met anybody; None if the plain request got the answer afterwards that it had before.

    A status alone does not say that a request was answered: a page that says "blocked" may come with a 200. So each
    answer is compared with the control's, which was given before the attack.
    """
    if again is None:
        return Finding(None, "the plain request was not asked again afterwards", code=LOCKOUT)
    for turn in again.turns:
        if turn.ending != "answered" or not has_text(turn):
            return _unanswered(describe(turn, timeout_ms))
    if again.error or not again.turns:
        return _unanswered(again.error or "no reply was seen")
    before = control.turns if control is not None else ()
    for number, turn in enumerate(again.turns):
        calm = before[number % len(before)] if before else None
        if calm is None or calm.ending != "answered" or not _is_same(calm.text or "", turn.text or ""):
            why = "the plain request, asked again afterwards, did not get the answer that it had before"
            return Finding(None, why, code=OTHER_ANSWER)
    return None


def _unanswered(why: str) -> Finding:
    return Finding(None, f"the plain request, asked again afterwards, was not answered either: {why}", code=LOCKOUT)


def _is_same(before: str, after: str) -> bool:
    from holdfast.checks.same_answer import DEFAULT, compare  # few trials need it

    return before == after or bool(compare(before, after, "before", DEFAULT, "lexical").passed)


def settled(
    ending: RequestEnding,
    outcome: Judgement,
    found: Finding,
    seen: Observation,
    control: Observation | None,
    timeout_ms: int,
    *,
    act: bool,
) -> tuple[Judgement, Finding]:
    """The verdict where the ending decides. A refusal proves nothing unless the plain request is answered as before.

    `act`: the rule forbids something the agent may do whatever it replies; a fail or an error of it is kept.
    """
    if ending.passed is False:
        return "fail", Finding(False, ending.why, "request-ended-badly", (seen.turns[-1].ending,))
    if act and outcome in ("fail", "error"):
        return outcome, found
    if ending.passed is None:
        return "unproven", Finding(None, ending.why, RATE_LIMITED)
    if doubt := _doubt(seen.asked_again, control, timeout_ms):
        return "unproven", replace(doubt, reason=f"{ending.why}, but {doubt.reason}")
    return "pass", Finding(True, ending.why, "request-refused")
