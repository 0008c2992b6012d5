"""A Run as reports see it, with everything that a person may want to look at; and the parts of a `ci` run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from holdfast.model.codes import RunNote, RunWarning
from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.score import Case, Cell, Interval, MutationScore, Replica, Score
from holdfast.model.spec import Invariant, Part
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Outcome, Verdict
from holdfast.model.world import Isolation


class TrialRow(Struct, frozen=True, omit_defaults=True, gc=False):
    """One trial of a cell."""

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
    """The verdict's code."""
    key: tuple[str, ...] = ()
    ended_by: str = ""
    """Both are the verdict's: together with the code they identify the cause."""
    output: str = ""
    notes: tuple[str, ...] = ()
    calls_made: str = ""
    """The observation's value."""
    trace: tuple[TraceEvent, ...] = ()
    again: str = ""
    """The command that reproduces it."""
    aside: bool = False
    """The trial's prompt did not decide the cell: others failed, or are undecided."""


class TracedTrial(Struct, frozen=True):
    """A trial with its observation and its verdicts."""

    trial: Trial
    seen: Observation
    verdicts: tuple[Verdict, ...] = ()


class CellRow(Struct, frozen=True):
    """A cell with the trials that decided it."""

    cell: Cell
    trials: Sequence[TrialRow]


class ReplicaRow(Struct, frozen=True):
    """One trial of a case with its observation and its verdicts."""

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
    """One execution, ready to render. Secrets in its texts are already masked."""

    id: str
    path: str
    """The run's directory, relative to the current folder if possible."""
    name: str
    spec_path: str
    seed: int
    score: Score
    """Its numbers are the contract's; its verdict is that of the whole run."""
    invariants: tuple[Invariant, ...]
    scenarios: tuple[Scenario, ...]
    cells: Sequence[CellRow]
    complete: bool = True
    running: bool = False
    """Another process is still writing the run, so trials may be missing."""
    warnings: tuple[RunWarning, ...] = ()
    notes: tuple[RunNote, ...] = ()
    """Notes for every report: no sandbox, cooperative planes, isolation, simulated faults."""
    background: tuple[RunNote, ...] = ()
    """Notes that a summary leaves out: how the agent was isolated, and what it could see."""
    sandbox: str = ""
    """A short note on weak isolation; empty if the sandbox enforced everything."""
    stateful: bool = False
    """The agent seems to keep state between trials, so they ran one at a time."""
    stopped: str = ""
    """What a budget left out; empty if no budget ended the run."""
    isolation: str = ""
    """How trials and cells were isolated from each other."""
    promises: tuple[Isolation, ...] = ()
    """What the sandbox enforced and what it did not; empty if there was none."""
    description: str = ""
    started: str = ""
    """ISO 8601, UTC."""
    duration_s: float = 0.0
    version: str = ""
    spec_digest: str = ""
    agent_digest: str = ""
    params: tuple[dict[str, Any], ...] = ({},)
    source: str = ""
    """The spec's path in its git repository; empty if it is in none."""
    cell_rules: frozenset[str] = frozenset()
    """Rules that have their own trials; the others share theirs."""
    page: str = ""
    """The path of its HTML page; empty if none was written."""
    gateway: bool = False
    """The agent was started by the user, behind `holdfast gateway`."""
    part: Part = "contract"
    contract: Score | None = None
    """The contract's own score next to cases; None if `score` is the contract's, or there is no matrix."""
    cases: Sequence[CaseRow] = ()
    judged_from: str = ""
    """For a rejudged run: the id of the run and what changed."""
    hunt: dict[str, Any] | None = None
    """For a hunt that has ended: its `hunt.json`."""
    map: dict[str, Any] | None = None
    """For a hunt or a map: its `map.json`."""

    @property
    def by_cases(self) -> bool:
        """Whether cases decide the run: tasks, mutations or sessions."""
        return self.part in ("scenario", "mutation", "replay")


class PartResult(Struct, frozen=True, omit_defaults=True):
    """The result of one part, or why it did not run."""

    part: Part
    score: float | None = None
    """0-100; None if nothing was decided, it did not run, or cases alone decide it."""
    best: float | None = None
    """The score if every harness error had passed."""
    weight: float = 0.0
    """The configured weight; 0: only the verdict counts."""
    share: float = 0.0
    """Its relative weight among the parts that have a score."""
    passed: bool = False
    exit_code: int = 0
    reasons: tuple[str, ...] = ()
    reason_codes: tuple[str, ...] = ()
    """The codes of these reasons; empty if the part passed."""
    interval: Interval | None = None
    mutation: MutationScore | None = None
    run: str = ""
    """The id of its run: `0007/contract`."""
    page: str = ""
    """The path of its report, relative to the folder of the whole run."""
    trials: int = 0
    said: str = ""
    """The result in a few words: `3 of 4 cases passed`."""
    skipped: str = ""
    """Why it did not run; empty if it did."""

    @property
    def ran(self) -> bool:
        return not self.skipped


class Overall(Struct, frozen=True, omit_defaults=True):
    """Every part, the weighted mean of the scores, and the verdict."""

    run: str
    score: float | None
    """0-100, two decimals; None if no part has a score."""
    passed: bool
    exit_code: int
    parts: tuple[PartResult, ...]
    reasons: tuple[str, ...] = ()
    min_score: float | None = None
    notes: tuple[str, ...] = ()
    """Findings that do not decide the verdict: regressions, a baseline."""
    warnings: tuple[RunWarning, ...] = ()
    """The warnings of all parts, without repeats."""
    spec_path: str = ""
    name: str = ""
    seed: int = 0
    started: str = ""
    duration_s: float = 0.0
    shard: str = ""
    """`2/4`: one shard only, and `merge` decides; empty: the complete run."""
    seal: str = ""
    """In `overall.json`: a digest of everything else."""
