"""What a planner learns from the trials that were judged."""

from __future__ import annotations

from msgspec import Struct

from holdfast.model.observation import FaultMet
from holdfast.model.verdict import Judgement


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


class Feed(Struct, frozen=True):
    """A value of one call's reply that appears later: in what another call sends, or in the answer."""

    source: int
    """Of the call, in the order of the trial's calls."""
    target: int | None
    """Of the call that sends it; None: it is in the answer."""


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
    writes: tuple[int, ...] = ()
    """Which of the calls change something and were not kept from it by a fault."""
    feeds: tuple[Feed, ...] = ()
    scripted: bool = True
    """No live model was asked."""
    error: bool = False
    """Holdfast or a provider failed."""
    failure: str = ""
    """Why the first rule failed, in words."""


class Judged(Struct, frozen=True):
    """How far a planner's trials have come."""

    done: int = 0
    """Trials of this planner that were judged."""
    failed: bool = False
    """The run is violated, whatever is still to come."""
    trials: tuple[JudgedTrial, ...] = ()
    """Those judged since the last call, in the order in which the planner gave them; only if it asked for them."""
