"""A Run as reports see it: one execution with everything a person may want to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.run_warning import RunNote, RunWarning
from holdfast.model.scenario import Scenario
from holdfast.model.score import Case, Cell, Replica, Score
from holdfast.model.spec import Invariant, Part
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Outcome, Verdict
from holdfast.model.world import Isolation


class TrialRow(Struct, frozen=True, omit_defaults=True, gc=False):
    """One trial as one cell sees it."""

    id: str
    prompt: str
    answer: str | None
    ending: str
    latency_ms: float
    outcome: Outcome
    reason: str
    score: float = 0.0
    detail: str = ""
    replica: int = 0
    faults: tuple[FaultMet, ...] = ()
    turns: tuple[Turn, ...] = ()
    turn: int = 0
    marks: tuple[tuple[int, int], ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    """As the verdict has it."""
    key: tuple[str, ...] = ()
    ended_by: str = ""
    """Both as the verdict has them: with the code, they tell its cause."""
    output: str = ""
    notes: tuple[str, ...] = ()
    calls_made: str = ""
    """As the observation has it."""
    trace: tuple[TraceEvent, ...] = ()
    again: str = ""
    """The command that reproduces it."""
    aside: bool = False
    """Of a prompt that did not decide the cell: others failed, or stayed open."""


class TracedTrial(Struct, frozen=True):
    """A trial with all that was seen of it and all that was said about it."""

    trial: Trial
    seen: Observation
    verdicts: tuple[Verdict, ...] = ()


class CellRow(Struct, frozen=True):
    """A cell with the trials that decided it."""

    cell: Cell
    trials: Sequence[TrialRow]


class ReplicaRow(Struct, frozen=True):
    """One trial of a case, with all that was seen of it and all that was said about it."""

    replica: Replica
    prompt: str
    seen: Observation
    verdicts: tuple[Verdict, ...] = ()
    again: str = ""
    """The command that reproduces it."""


class CaseRow(Struct, frozen=True):
    """A case with its trials."""

    case: Case
    replicas: Sequence[ReplicaRow]


class Run(Struct, frozen=True):
    """One execution, ready to be rendered. Every text in it is already masked."""

    id: str
    path: str
    """The run's directory, relative to where the user stands if possible."""
    name: str
    spec_path: str
    seed: int
    score: Score
    """Its numbers are the contract's, its verdict that of the whole run."""
    invariants: tuple[Invariant, ...]
    scenarios: tuple[Scenario, ...]
    cells: Sequence[CellRow]
    complete: bool = True
    running: bool = False
    """Another process is writing it: what is missing is still to come."""
    warnings: tuple[RunWarning, ...] = ()
    notes: tuple[RunNote, ...] = ()
    """What every report must say: no sandbox, cooperative planes, isolation, simulated."""
    background: tuple[RunNote, ...] = ()
    """Those of the notes that a summary leaves out: how the agent was isolated, and what it could see."""
    sandbox: str = ""
    """The isolation in a few words, where there was little of it; empty: a sandbox kept what it was asked to keep."""
    stateful: bool = False
    """The agent seems to keep state between trials, so they ran one at a time."""
    stopped: str = ""
    """What a budget left out, in words; empty: none ended the run."""
    isolation: str = ""
    """How trials and cells are kept apart, in words."""
    promises: tuple[Isolation, ...] = ()
    """What the sandbox enforced and what not; empty: there was none."""
    description: str = ""
    started: str = ""
    """ISO 8601, UTC."""
    duration_s: float = 0.0
    version: str = ""
    spec_digest: str = ""
    agent_digest: str = ""
    params: tuple[dict[str, Any], ...] = ({},)
    source: str = ""
    """The spec's path from the top of the git repository that it lies in; empty if it is in none."""
    cell_rules: frozenset[str] = frozenset()
    """Rules that have trials of their own; the others share theirs."""
    page: str = ""
    """Where its HTML page lies; empty if none was written."""
    gateway: bool = False
    """Of an agent that the user started, behind `holdfast gateway`."""
    part: Part = "contract"
    contract: Score | None = None
    """The contract's own score beside cases; None: `score` is the contract's, or there is no matrix."""
    cases: Sequence[CaseRow] = ()
    judged_from: str = ""
    """Set when a stored run was judged anew: the id of the run and what changed."""

    @property
    def by_cases(self) -> bool:
        """Cases decide it: tasks, mutations or sessions."""
        return self.part in ("scenario", "mutation", "replay")
