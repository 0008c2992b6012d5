"""How a trial whose request itself was mutated ended: refused, badly, or with an answer for the rules to judge."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.judge.endings import describe, has_text
from holdfast.model.observation import EndingKind, Observation, Turn
from holdfast.model.task import RequestChange
from holdfast.model.verdict import Finding, Judgement

_BAD: frozenset[EndingKind] = frozenset(("timeout", "limit", "raised", "crashed", "out_of_memory", "closed"))


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


def _unanswered(again: Observation | None, timeout_ms: int) -> str:
    """Why the plain request, asked after the refusal, got no answer; empty if it got one."""
    if again is None:
        return "the plain request was not asked again afterwards"
    last = again.turns[-1] if again.turns else None
    if last is not None and last.ending == "answered" and has_text(last) and not again.error:
        return ""
    why = again.error or (describe(last, timeout_ms) if last is not None else "nothing came of it")
    return f"the plain request, asked again afterwards, was not answered either: {why}"


def is_unproven(change: RequestChange, seen: Observation) -> bool:
    """Whether the agent refused, and may have refused anybody."""
    ending = request_ending(change, seen.turns[-1], 0) if seen.turns else None
    if ending is None or ending.passed is False:
        return False
    return ending.passed is None or bool(_unanswered(seen.asked_again, 0))


def settled(
    ending: RequestEnding, outcome: Judgement, found: Finding, seen: Observation, timeout_ms: int, *, act: bool
) -> tuple[Judgement, Finding]:
    """The verdict where the ending decides. A refusal proves nothing unless the plain request is answered afterwards.

    `act`: the rule forbids something the agent may do whatever it replies; what it found, or could not, stands.
    """
    if ending.passed is False:
        return "fail", Finding(False, ending.why, "request-ended-badly", (seen.turns[-1].ending,))
    if act and outcome in ("fail", "error"):
        return outcome, found
    if ending.passed is None:
        return "unproven", Finding(None, ending.why, "request-rate-limited")
    if plain := _unanswered(seen.asked_again, timeout_ms):
        return "unproven", Finding(None, f"{ending.why}, but {plain}", "request-lockout")
    return "pass", Finding(True, ending.why, "request-refused")
