"""What a planner learns from the trials that were judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from holdfast.model.observation import FaultMet, Observation
from holdfast.model.trace import REFUSED, TraceEvent
from holdfast.model.verdict import Judgement, Verdict


class VerdictCode(Struct, frozen=True):
    """A verdict as values: two trials with the same codes failed, or passed, in the same way."""

    rule: str
    outcome: Judgement
    code: str
    key: tuple[str, ...] = ()


class CallSite(Struct, frozen=True):
    """Where a fault could be placed: a call of the agent, by its plane, its target and its place among such calls."""

    plane: str
    target: str
    ordinal: int
    """From 1. A client library's retry belongs to the call that it repeats."""


class JudgedTrial(Struct, frozen=True):
    """One trial that was judged."""

    trial: str
    """Its id."""
    ending: str
    verdicts: tuple[VerdictCode, ...]
    ledger: tuple[FaultMet, ...]
    """Every fault that fired, and whether it was met."""
    calls: tuple[CallSite, ...]
    """In the order in which they began."""


class Judged(Struct, frozen=True):
    """How far a planner's trials have come."""

    done: int = 0
    """Trials of this planner that were judged."""
    failed: bool = False
    """The run is violated, whatever is still to come."""
    trials: tuple[JudgedTrial, ...] = ()
    """Those judged since the last call, in the order in which the planner gave them; only if it asked for them."""


def judged_trial(observation: Observation, verdicts: Sequence[Verdict]) -> JudgedTrial:
    """What a planner may know of the trial."""
    codes = tuple([VerdictCode(one.invariant, one.outcome, one.code, one.key) for one in verdicts])
    calls = tuple(call_sites(observation.trace))
    return JudgedTrial(observation.trial, observation.ending, codes, observation.ledger, calls)


def call_sites(trace: Iterable[TraceEvent]) -> Iterable[CallSite]:
    """The calls of a trial, numbered for each target. Calls that were only declared, or refused by egress, are none."""
    ordinals = Counter[tuple[str, str]]()
    for event in trace:
        if event.retry or event.phase == "declared" or event.error_type == REFUSED:
            continue
        # An HTTP call is traced as `METHOD URL`, and its faults wait at the URL.
        target = event.tool.partition(" ")[2] if event.event_type == "http_call" else event.tool
        ordinals[event.plane, target] += 1
        yield CallSite(event.plane, target, ordinals[event.plane, target])
