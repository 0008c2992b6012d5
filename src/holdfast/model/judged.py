"""The facts about judged trials that a planner gets."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from holdfast.model.observation import FaultMet
from holdfast.model.verdict import Judgement


class VerdictCode(Struct, frozen=True):
    """A verdict as values: two trials with equal codes failed, or passed, in the same way."""

    rule: str
    outcome: Judgement
    code: str
    key: tuple[str, ...] = ()


class CallSite(Struct, frozen=True):
    """A place for a fault: a call of the agent, by plane, target and position among such calls."""

    plane: str
    target: str
    ordinal: int
    """From 1. A client library's retry counts as part of the call that it repeats."""


FeedKind: TypeAlias = Literal["call", "answer", "file", "row"]


class DataFlow(Struct, frozen=True):
    """A value of one call's reply that appears later: in another call's arguments, a file, a row or the answer."""

    source: int
    """Of the call, in the order of the trial's calls."""
    target: int | None
    """Of the call that sends it; None: no call does."""
    kind: FeedKind = "call"
    name: str = ""
    """The path of the file, or the service and table of the row."""
    values: tuple[str, ...] = ()
    """Some of the values; none if only their digests are stored."""


class JudgedTrial(Struct, frozen=True):
    """One judged trial."""

    trial: str
    """The trial's id."""
    ending: str
    verdicts: tuple[VerdictCode, ...]
    ledger: tuple[FaultMet, ...]
    """Every fault that fired, and whether it was met."""
    calls: tuple[CallSite, ...]
    """In the order in which they began."""
    writes: tuple[int, ...] = ()
    """Which of the calls change something and succeeded."""
    feeds: tuple[DataFlow, ...] = ()
    scripted: bool = True
    """No live model was asked."""
    error: bool = False
    """Holdfast or a provider failed."""
    boundaries: int = 0
    """How often something was changed: by a call, or by a statement of SQL."""
    reasons: dict[str, str] = {}
    """Why rules failed, in words: for reports, never for decisions."""
    arrived: tuple[int, ...] = ()
    """`writes`, and those calls that may have changed something before they failed for the agent: a lost reply."""
    statements: int = 0
    """How many statements of SQL changed something."""
    order: tuple[int, ...] = ()
    """The calls in the order in which they began, those to services included."""
    rows: tuple[int, ...] = ()
    """Which of the calls wrote to a table of a database."""


class JudgingProgress(Struct, frozen=True):
    """The progress of a planner's trials."""

    done: int = 0
    """Trials of this planner that were judged."""
    failed: bool = False
    """Whether the run has failed, whatever the remaining trials do."""
    trials: tuple[JudgedTrial, ...] = ()
    """Those judged since the last call, in the order in which the planner gave them; only if it asked for them."""
