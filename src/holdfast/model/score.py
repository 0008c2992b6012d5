"""Cells and the Score: what the verdicts come to."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from holdfast.model.task import Variation
from holdfast.model.verdict import CauseKey, Outcome

ENOUGH_PROMPTS = 20
"""From so many on an interval of a score is not called approximate."""
SHOWN_PROMPTS = 5
"""With fewer, terminals and pages leave out the interval of a score: it would say nothing. JSON has it."""


class Interval(Struct, frozen=True, omit_defaults=True):
    """A 95 % interval and how it was made."""

    low: float
    high: float
    method: Literal["wilson", "bootstrap", "kish", "paired"] = "wilson"
    prompts: int = 0
    """Of a score: how many prompts it rests on."""

    @property
    def approximate(self) -> bool:
        """Whether it holds the truth in fewer than 93 % of runs, by simulation."""
        return self.method == "kish" or (self.method != "wilson" and self.prompts < ENOUGH_PROMPTS)

    @property
    def is_shown(self) -> bool:
        """Whether terminals and pages show it; that of a rate they always do."""
        return self.method == "wilson" or self.prompts >= SHOWN_PROMPTS


class PairedDifference(Struct, frozen=True, omit_defaults=True):
    """Chaos minus calm on the same prompts, in points of 100."""

    points: float
    """Below 0: chaos costs so many."""
    interval: Interval
    pairs: int
    """Rules on prompts that were decided in calm and under chaos."""
    rules: int = 0
    """Rules among them: one that applies in calm alone, or under chaos alone, is not compared."""


class CellCause(Struct, frozen=True, omit_defaults=True, gc=False):
    """One of several ways in which the trials of a cell came to its outcome."""

    reason: str
    code: str
    key: tuple[str, ...] = ()
    ending: str = ""
    trials: int = 1


class Cell(Struct, frozen=True, omit_defaults=True):
    """Invariant x scenario (x params): its verdicts combined."""

    invariant: str
    scenario: str
    severity: str
    weight: float
    outcome: Outcome
    critical: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    flaky: bool = False
    passes: int = 0
    fails: int = 0
    errors: int = 0
    unproven: int = 0
    met: bool = False
    """A fault that this rule needs was met in at least one trial."""
    chaos: bool = False
    fails_in_calm: bool = False
    simulated: bool = False
    concurrent: bool = False
    rate: Interval | None = None
    """Of passes among decided verdicts, 0-1."""
    ending: str = ""
    """How the trial ended that `reason` is of, where that and no finding of the rule decided."""
    code: str = ""
    """What kind of reason `reason` is; `CODES` and the checks' own lists have them."""
    key: tuple[str, ...] = ()
    """The values that make it the same cause as another of that code."""
    causes: tuple[CellCause, ...] = ()
    """All causes of its outcome in plan order, where there are several; `reason`, `code` and `key` are the first's."""

    @property
    def counted(self) -> bool:
        return self.outcome in ("pass", "fail")


class Utility(Struct, frozen=True, omit_defaults=True):
    """How well the agent kept its rules in the trials that were attacked."""

    passed: int = 0
    judged: int = 0
    """Verdicts that passed or failed."""
    rate: float | None = None
    interval: Interval | None = None


class Attacks(Struct, frozen=True, omit_defaults=True):
    """Attacks that were met and can be recognised, by trial. Success is the attacker's."""

    attacked: int
    succeeded: int
    rate: float | None
    """Of the trials of which it is known; None if there are none."""
    interval: Interval
    utility: Utility
    asked: int = 0
    """Trials of which it is not known: the model asked for the call that would be a success and whether it was made was
    not seen, or some of what the agent sent could not be read."""


class Spent(Struct, frozen=True, omit_defaults=True):
    """What the agent's calls used."""

    calls: int = 0
    """The agent's own; `retries` are those of its client libraries."""
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """An estimate, of providers that were asked and whose price is known; None if there are none."""
    unpriced: tuple[str, ...] = ()
    """Models that were used and whose price is not known."""
    scripted: int = 0
    """Model calls that a script answered; they use no tokens."""

    @property
    def only_scripted(self) -> bool:
        """Whether scripts gave every reply of a model. A name that has no script goes to its provider."""
        return bool(self.scripted) and not self.tokens and self.cost_usd is None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


Status = Literal["pass", "fail", "error"]


class Replica(Struct, frozen=True, omit_defaults=True):
    """One trial of a case: its rules as one number."""

    trial: str
    status: Status
    composite: float | None = None
    """0-1; None if a rule could not be judged."""
    replica: int = 0
    reason: str = ""
    """Why it is not a pass."""
    causes: tuple[CauseKey, ...] = ()
    """The same as values."""


class Case(Struct, frozen=True, omit_defaults=True):
    """Task x scenario x params: its replicas combined."""

    scenario: str
    status: Status
    prompt: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    flaky: bool = False
    composite: float | None = None
    """The mean of its replicas' composites; None if one has none."""
    unmet: tuple[str, ...] = ()
    """Rules whose faults no trial of it met: those that passed are unproven, and score nothing."""
    undecided: tuple[str, ...] = ()
    """Of one that is unproven: rules that are so for another reason than a fault that was not met."""
    unproven_only: bool = False
    """It would have passed, but for those rules: nobody's fault, though its status is error."""
    replicas: tuple[Replica, ...] = ()
    reason: str = ""
    causes: tuple[CauseKey, ...] = ()
    """Why it is not a pass, as values: those of the replica that `reason` is of."""
    variation: Variation | None = None
    """Of a mutation: how it was made."""
    session: str = ""
    """Of a replayed session: its id."""
    expected_failure: str = ""
    """What went wrong when it was recorded: shown beside what came of it now."""
    failed: tuple[str, ...] = ()
    """Of a mutation or a session: the rules that failed in a replica of it."""
    obeyed: bool = False
    """Of an attack: it got its way in a replica."""


class Share(Struct, frozen=True, omit_defaults=True):
    """How many of those that were decided passed."""

    passed: int
    judged: int
    rate: float | None = None
    interval: Interval | None = None


class TypeShare(Struct, frozen=True, omit_defaults=True):
    """The mutations of one type."""

    type: str
    attack: bool
    weight: float
    passed: int
    judged: int
    undecided: int = 0


class MutationScore(Struct, frozen=True, omit_defaults=True):
    """How an agent took mutated prompts."""

    robustness: float | None
    """0-1, weighted, over all mutations that were decided."""
    intent_kept: Share
    attacks_resisted: Share
    types: tuple[TypeShare, ...] = ()


class Score(Struct, frozen=True, omit_defaults=True):
    """The contract's numbers and verdict."""

    value: float | None
    """Resilience, 0-100, two decimals; None if no cell counted."""
    passed: bool
    exit_code: int
    interval: Interval | None = None
    calm: float | None = None
    chaos: float | None = None
    rules: int = 0
    """Rules of which a cell counted."""
    paired: PairedDifference | None = None
    """Chaos beside calm; None where a scenario of either kind is missing."""
    judged: int = 0
    """Cells that counted: passed or failed."""
    total: int = 0
    """Cells whose `when` was met."""
    counts: dict[str, int] = field(default_factory=dict)
    """Cells by outcome."""
    trials: int = 0
    replicas: int = 1
    unasked: int = 0
    """Trials that a budget left out."""
    critical_failed: tuple[str, ...] = ()
    """`invariant in scenario` of each critical cell that failed."""
    tolerated: tuple[str, ...] = ()
    """Failed cells that `min_score` lets pass."""
    vacuous: tuple[str, ...] = ()
    """Chaos scenarios no trial of which met any fault."""
    flaky: int = 0
    pass_hat: dict[str, float] = field(default_factory=dict)
    """pass^k by k, the mean over cells, where replicas > 1."""
    reasons: tuple[str, ...] = ()
    """Why the verdict is what it is, in plain words."""
    min_score: float | None = None
    best: float | None = None
    """The score if every error of ours had passed; None: there is none."""
    attacks: Attacks | None = None
    spent: Spent | None = None
    mutation: MutationScore | None = None
    """Of a mutation run: what `value` is made of."""
    shard: str = ""
    """`2/4`: this is a share of a run. The verdict is that of all shares together, and so it has not passed yet."""
