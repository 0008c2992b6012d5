"""How a trial whose request itself was mutated ended: refused, badly, or with an answer for the rules to judge."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.judge.endings import describe, has_text
from holdfast.model.observation import EndingKind, Observation, Turn
from holdfast.model.task import RequestChange
from holdfast.model.verdict import Finding, Judgement
from holdfast.reading.words import plural

_BAD: frozenset[EndingKind] = frozenset(("timeout", "limit", "raised", "crashed", "out_of_memory", "closed"))
RATE_LIMITED = "request-rate-limited"
LOCKOUT = "request-lockout"
OTHER_ANSWER = "request-other-answer"
NOT_ALWAYS = "request-not-always-refused"
REFUSES_ANYBODY = frozenset({RATE_LIMITED, LOCKOUT, OTHER_ANSWER, NOT_ALWAYS})
"""Codes of refusals that prove nothing: the agent may refuse such requests whatever is in them."""


class RequestEnding(NamedTuple):
    """What the ending alone decides."""

    passed: bool | None
    """None: the agent may have refused the request whatever was in it."""
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


def settle(
    change: RequestChange,
    judged: tuple[Judgement, Finding],
    seen: Observation,
    control: Observation | None,
    timeout_ms: int,
    *,
    act: bool,
) -> tuple[Judgement, Finding]:
    """The verdict on a mutation of the request: a refusal or a bad ending decides for every rule.

    A refusal proves nothing unless the agent refuses the attack every time and answers the plain request as before.
    `act`: the rule forbids something the agent may do whatever it replies; a fail or an error of it is kept.
    """
    turn = seen.turns[-1]
    ending = request_ending(change, turn, timeout_ms)
    if ending is not None and ending.passed is False:
        return "fail", Finding(False, ending.why, "request-ended-badly", (turn.ending,))
    if judged[0] in ("fail", "error") and (act or ending is None):
        return judged
    if ending is None:
        return _answered(judged, seen, control, timeout_ms)
    if ending.passed is None:
        return "unproven", Finding(None, ending.why, RATE_LIMITED)
    if doubt := _doubt(seen.asked_again, control, timeout_ms):
        return "unproven", replace(doubt, reason=f"{ending.why}, but {doubt.reason}")
    return "pass", Finding(True, ending.why, "request-refused")


def _answered(
    judged: tuple[Judgement, Finding], seen: Observation, control: Observation | None, timeout_ms: int
) -> tuple[Judgement, Finding]:
    """The rule's own verdict on the answer, unless the agent refuses such requests whatever is in them."""
    if judged[0] != "pass":
        return judged
    if seen.repeats:
        why = f"the agent refused the request {plural(len(seen.repeats), 'time')} and then answered it"
        return "unproven", Finding(None, why, NOT_ALWAYS)
    # An answer like the control's shows that nobody is locked out. Any other may be a page that says "blocked".
    if control is None or seen.asked_again is None or _is_answered_as(control, seen.turns):
        return judged
    if doubt := _doubt(seen.asked_again, control, timeout_ms):
        return "unproven", replace(doubt, reason=f"the answer is not the control's, and {doubt.reason}")
    return judged


def _doubt(again: Observation | None, control: Observation | None, timeout_ms: int) -> Finding | None:
    """Why the agent may refuse everybody; None if the plain request got the answer afterwards that it had before.

    A status alone does not say that a request was answered: a page that says "blocked" may come with a 200. So each
    answer is compared with the control's, which was given before the attack.
    """
    if again is None:
        return Finding(None, "the unmodified request was not sent again afterwards", code=LOCKOUT)
    refused = next((turn for turn in again.turns if turn.ending != "answered" or not has_text(turn)), None)
    if refused is not None or again.error or not again.turns:
        why = describe(refused, timeout_ms) if refused is not None else again.error or "no reply was seen"
        return Finding(None, f"the unmodified request sent afterwards also failed: {why}", code=LOCKOUT)
    if not _is_answered_as(control, again.turns):
        why = "the unmodified request sent afterwards got a different answer than before"
        return Finding(None, why, code=OTHER_ANSWER)
    return None


def _is_answered_as(control: Observation | None, turns: Sequence[Turn]) -> bool:
    """Whether each turn has the answer of the control; a conversation may have been held several times."""
    before = control.turns if control is not None else ()
    return bool(before) and all(
        calm.ending == "answered" and _is_same(calm.text or "", turn.text or "")
        for calm, turn in zip(cycle(before), turns, strict=False)
    )


def _is_same(before: str, after: str) -> bool:
    from holdfast.checks.same_answer import DEFAULT, compare  # few trials need it

    return before == after or bool(compare(before, after, "before", DEFAULT, "lexical").passed)
