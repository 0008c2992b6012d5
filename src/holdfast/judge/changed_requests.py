"""How a trial whose request itself was mutated ended: refused, badly, or with an answer for the rules to judge."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.judge.endings import describe
from holdfast.model.observation import EndingKind, Observation, Turn
from holdfast.model.task import RequestChange
from holdfast.model.verdict import Finding, Judgement

_BAD: frozenset[EndingKind] = frozenset(("timeout", "limit", "raised", "crashed", "out_of_memory", "closed"))


class RequestEnding(NamedTuple):
    """What the ending alone decides."""

    passed: bool
    why: str


def request_ending(change: RequestChange, turn: Turn, timeout_ms: int) -> RequestEnding | None:
    """Whether the agent refused the request, or ended badly by it; None where the rules judge its answer.

    A 4xx is a refusal. So is a connection closed without a reply if HTTP does not allow what was sent.
    """
    status = turn.status or 0
    if turn.ending == "http_error" and 400 <= status < 500:
        return RequestEnding(True, f"refused with {status}")
    if turn.ending == "closed" and turn.status is None and change.malformed:
        return RequestEnding(True, "refused: a malformed request, and the connection was closed without a reply")
    if turn.ending == "no_answer" and 200 <= status < 300 and change.unanswered:
        return RequestEnding(True, f"answered {status} without a body, and {change.method} asks for none")
    if turn.ending in _BAD or status >= 500:
        return RequestEnding(False, f"ended badly by {change.kind}: {describe(turn, timeout_ms)}")
    return None


def unanswered(control: Observation | None, timeout_ms: int) -> str:
    """Why the plain request of the same prompt got no answer; empty if it got one."""
    if control is None:
        return "the plain request was not asked"
    last = control.turns[-1] if control.turns else None
    if last is not None and last.ending == "answered" and not control.error:
        return ""
    why = control.error or (describe(last, timeout_ms) if last is not None else "nothing came of it")
    return f"the plain request was not answered either: {why}"


def settled(
    ending: RequestEnding, outcome: Judgement, found: Finding, plain: str, *, act: bool
) -> tuple[Judgement, Finding]:
    """The verdict where the ending decides.

    `plain`: why the plain request got no answer; then a refusal proves nothing. `act`: the rule forbids something the
    agent may do whatever it replies; what it found, or could not, stands.
    """
    if not ending.passed:
        return "fail", Finding(False, ending.why)
    if act and outcome in ("fail", "error"):
        return outcome, found
    if plain:
        return "unproven", Finding(None, f"{ending.why}, but {plain}")
    return "pass", Finding(True, ending.why)
