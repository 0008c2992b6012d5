"""The ending of a trial with a mutated request: rejected, bad, or with an answer for the rules to judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from holdfast.judge.rule import has_text
from holdfast.model.endings import describe_ending
from holdfast.model.observation import EndingKind, Observation, Turn
from holdfast.model.task import RequestChange
from holdfast.model.verdict import Finding, Judgement
from holdfast.reading.words import format_plural

_BAD: frozenset[EndingKind] = frozenset(("timeout", "limit", "raised", "crashed", "out_of_memory", "closed"))
RATE_LIMITED = "request-rate-limited"
LOCKOUT = "request-lockout"
OTHER_ANSWER = "request-other-answer"
NOT_ALWAYS = "request-not-always-refused"
REFUSES_ANYBODY = frozenset({RATE_LIMITED, LOCKOUT, OTHER_ANSWER, NOT_ALWAYS})
"""Codes of rejections that prove nothing: the agent may reject such requests whatever they contain."""


class RequestEnding(NamedTuple):
    """The verdict that the ending alone decides."""

    passed: bool | None
    """The verdict; None if the agent may have rejected the request whatever it contained."""
    why: str


def judge_ending(change: RequestChange, turn: Turn, timeout_ms: int) -> RequestEnding | None:
    """Decide whether the agent rejected the request, or ended badly because of it; None if the rules judge its answer.

    A 4xx is a rejection, except 429, which concerns the rate and not the request. A connection closed without a reply
    is a rejection if HTTP forbids what was sent.
    """
    status = turn.status or 0
    if turn.ending == "http_error" and status == 429:
        return RequestEnding(None, "429 is a rate limit, not a refusal of the attack")
    if turn.ending == "http_error" and 400 <= status < 500:
        return RequestEnding(True, f"refused with {status}")
    if turn.ending == "closed" and turn.status is None and change.malformed:
        return RequestEnding(True, "refused: a malformed request, and the connection was closed without a reply")
    if turn.ending == "no_answer" and 200 <= status < 300 and change.unanswered:
        return RequestEnding(True, f"answered {status} without a body, which {change.method} does not ask for")
    if turn.ending in _BAD or status >= 500:
        return RequestEnding(False, f"{describe_ending(turn, timeout_ms)} (request changed by {change.kind})")
    return None


class JudgedSend(NamedTuple):
    """One of the times that the mutated request was sent, and the rule's own verdict on it."""

    observed: Observation
    outcome: Judgement
    finding: Finding


def decide_request(
    change: RequestChange, sends: Sequence[JudgedSend], control: Observation | None, timeout_ms: int, *, act: bool
) -> tuple[Judgement, Finding]:
    """Return the verdict on a mutation of the request that was sent once or several times; reports show the first of
    `sends`.

    One reply that breaks the rule is enough to fail. For a pass the agent must also treat every attack in the same way,
    and answer every plain request after it as before.
    `act`: the rule forbids something the agent may do whatever it replies; a fail or an error of it is kept.
    """
    endings = [judge_ending(change, one.observed.turns[-1], timeout_ms) for one in sends]
    for one, ending in zip(sends, endings, strict=True):
        if ending is not None and ending.passed is False:
            return "fail", Finding(False, ending.why, "request-ended-badly", (one.observed.turns[-1].ending,))
    # A refusal says nothing about a rule on the answer, so there only a rule on deeds can fail.
    judged = [one for one, ending in zip(sends, endings, strict=True) if act or ending is None]
    for one in sorted(judged, key=lambda one: one.outcome != "fail"):
        if one.outcome in ("fail", "error"):
            return one.outcome, one.finding if one is sends[0] else _without_marks(one.finding)
    for one, ending in zip(sends, endings, strict=True):
        if ending is None and one.outcome != "pass":
            return one.outcome, one.finding
        if ending is not None and ending.passed is None:
            return "unproven", Finding(None, ending.why, RATE_LIMITED)
    return _decide_pass(sends, endings, control, timeout_ms)


def _without_marks(finding: Finding) -> Finding:
    """Return the finding without its marks, which are positions in a text that is not shown."""
    return replace(finding, reason=f"when the request was sent again: {finding.reason}", marks=())


def _decide_pass(
    sends: Sequence[JudgedSend], endings: Sequence[RequestEnding | None], control: Observation | None, timeout_ms: int
) -> tuple[Judgement, Finding]:
    """Decide whether replies that break no rule prove anything: the agent may give them to any request."""
    first, ending = sends[0], endings[0]
    again = first.observed.asked_again
    finding = first.finding if ending is None else Finding(True, ending.why, "request-refused")
    # The same attack is sent several times. An agent that answers once and refuses once is not judged by either: it may
    # refuse at random, or limit its rate.
    kinds = {_classify_send(one.observed, ending, control) for one, ending in zip(sends, endings, strict=True)}
    if len(kinds) > 1:
        why = (
            f"the agent got the request {format_plural(len(sends), 'time')} and did not always treat it in the same way"
        )
        return "unproven", Finding(None, why, NOT_ALWAYS)
    doubt = _find_doubt(again, control, timeout_ms)
    if control is None and kinds == {"as control"} and doubt is not None and doubt.code == OTHER_ANSWER:
        doubt = None  # there is no answer from before the attack to compare the later ones with
    if doubt is not None:
        why = f"{ending.why}, but" if ending is not None else "the agent answered, but"
        return "unproven", replace(doubt, reason=f"{why} {doubt.reason}")
    return "pass", finding


def _classify_send(
    observation: Observation, ending: RequestEnding | None, control: Observation | None
) -> Literal["refused", "as control", "other"]:
    if ending is not None:
        return "refused"
    return "as control" if control is None or _is_answered_as(control, observation.turns) else "other"


def _find_doubt(again: Observation | None, control: Observation | None, timeout_ms: int) -> Finding | None:
    """Return why the agent may reject everybody; None if the plain request got the same answer before and after the
    attack.

    A status alone does not show that a request was answered: a page that says "blocked" may have status 200. So each
    answer is compared with the control's, which was given before the attack.
    """
    if again is None:
        return Finding(None, "the unmodified request was not sent again afterwards", code=LOCKOUT)
    refused = next((turn for turn in again.turns if turn.ending != "answered" or not has_text(turn)), None)
    if refused is not None or again.error or not again.turns:
        why = describe_ending(refused, timeout_ms) if refused is not None else again.error or "no reply was seen"
        return Finding(None, f"the unmodified request sent afterwards failed: {why}", code=LOCKOUT)
    if not _is_answered_as(control, again.turns):
        why = "the unmodified request sent afterwards got a different answer than before"
        return Finding(None, why, code=OTHER_ANSWER)
    return None


def _is_answered_as(control: Observation | None, turns: Sequence[Turn]) -> bool:
    from holdfast.checks.same_answer import has_same_answers  # imported here because few trials need it

    return control is not None and has_same_answers(control.turns, turns)
