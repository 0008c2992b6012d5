"""The events that the core emits. It never prints: terminal, store and pages listen."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from holdfast.model.codes import RunWarning
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.score import Cell, CostEstimate
from holdfast.model.spec import Spec
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict


class RunStarted(Struct, frozen=True):
    """The plan is known, and nothing has run yet."""

    run_id: str
    path: str
    spec: Spec
    trials: int
    cells: int
    rules: int
    scenarios: int
    seed: int
    concurrency: int
    done: int = 0
    """Trials already completed in a resumed run."""


class TrialStarted(Struct, frozen=True):
    trial: Trial


class CallSeen(Struct, frozen=True):
    """A call of a running trial has ended."""

    trial: Trial
    call: TraceEvent


class FaultFired(Struct, frozen=True):
    trial: Trial
    fault: FaultMet


class TrialEnded(Struct, frozen=True):
    trial: Trial
    observation: Observation


class VerdictGiven(Struct, frozen=True):
    trial: Trial
    verdict: Verdict


class CellDecided(Struct, frozen=True):
    cell: Cell


class WorkerStatus(Struct, frozen=True):
    """The state of a cluster's workers."""

    workers: int
    in_flight: int
    """The number of running trials."""
    lost: int
    repeated: int
    """The number of trials repeated because their worker was lost."""


class WarningIssued(Struct, frozen=True):
    warning: RunWarning


class CostEstimated(Struct, frozen=True):
    """The calm trials of a hunt on a live model have ended, and no other has begun."""

    estimate: CostEstimate


class RunEnded(Struct, frozen=True):
    """The last event. `complete` is false if the run was interrupted."""

    complete: bool


Event: TypeAlias = (
    RunStarted
    | TrialStarted
    | CallSeen
    | FaultFired
    | TrialEnded
    | VerdictGiven
    | CellDecided
    | WorkerStatus
    | WarningIssued
    | CostEstimated
    | RunEnded
)
