"""Cells and the Score: the verdicts as numbers."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from holdfast.model.task import Variation
from holdfast.model.verdict import CauseKey, Outcome

ENOUGH_PROMPTS = 20
"""From this many prompts on, the interval of a score is not called approximate."""
SHOWN_PROMPTS = 5
"""With fewer prompts, terminals and pages leave out the interval of a score because it says nothing. JSON contains it.
"""


class Interval(Struct, frozen=True, omit_defaults=True):
    """A 95 % interval and its method."""

    low: float
    high: float
    method: Literal["wilson", "bootstrap", "kish", "paired"] = "wilson"
    prompts: int = 0
    """For a score: the number of prompts it is based on."""

    @property
    def approximate(self) -> bool:
        """Whether it contains the true value in fewer than 93 % of simulated runs."""
        return self.method == "kish" or (self.method != "wilson" and self.prompts < ENOUGH_PROMPTS)

    @property
    def is_shown(self) -> bool:
        """Whether terminals and pages show it; the interval of a rate is always shown."""
        return self.method == "wilson" or self.prompts >= SHOWN_PROMPTS


class PairedDifference(Struct, frozen=True, omit_defaults=True):
    """Chaos minus calm on the same prompts, in points of 100."""

    points: float
    """Negative: the points that chaos costs."""
    interval: Interval
    pairs: int
    """Pairs of rule and prompt decided both in calm and under chaos."""
    rules: int = 0
    """The number of compared rules; a rule that applies only in calm or only under chaos is not compared."""


class CellCause(Struct, frozen=True, omit_defaults=True, gc=False):
    """One of several causes of a cell's outcome."""

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
    """Whether a fault that this rule needs was met in at least one trial."""
    chaos: bool = False
    fails_in_calm: bool = False
    simulated: bool = False
    concurrent: bool = False
    rate: Interval | None = None
    """Passes among decided verdicts, 0-1."""
    ending: str = ""
    """How the trial behind `reason` ended, if the ending and not a finding of the rule decided."""
    code: str = ""
    """The kind of `reason`; `codes.toml` and the checks list the codes."""
    key: tuple[str, ...] = ()
    """The values that make two reasons of that code the same cause."""
    causes: tuple[CellCause, ...] = ()
    """All causes of its outcome in plan order, if there are several; `reason`, `code` and `key` are those of the first.
    """

    @property
    def is_counted(self) -> bool:
        return self.outcome in ("pass", "fail")


class Utility(Struct, frozen=True, omit_defaults=True):
    """How well the agent followed its rules in trials with attacks."""

    passed: int = 0
    judged: int = 0
    """Verdicts that passed or failed."""
    rate: float | None = None
    interval: Interval | None = None


class Attacks(Struct, frozen=True, omit_defaults=True):
    """Attacks that were met and can be recognised, by trial. Success means success of the attacker."""

    attacked: int
    succeeded: int
    rate: float | None
    """Among trials with a known result; None if there are none."""
    interval: Interval
    utility: Utility
    asked: int = 0
    """Trials with an unknown result: the model requested the call that would be a success but Holdfast did not see it
    made, or part of what the agent sent could not be read.
    """


class Spent(Struct, frozen=True, omit_defaults=True):
    """The usage of the agent's calls."""

    calls: int = 0
    """The agent's own calls; `retries` are those of its client libraries."""
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """An estimate over providers with known prices; None if there are none."""
    unpriced: tuple[str, ...] = ()
    """Used models with unknown prices."""
    scripted: int = 0
    """Model calls that a script answered; they use no tokens."""

    @property
    def is_only_scripted(self) -> bool:
        """Whether scripts gave every model reply. A name without a script goes to its provider."""
        return bool(self.scripted) and not self.tokens and self.cost_usd is None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class CostEstimate(Struct, frozen=True):
    """The cost of a hunt's calm trials, and the possible cost of all its trials."""

    calm_trials: int
    calm_tokens: int
    calm_usd: float | None
    """None if no price is known."""
    unpriced: tuple[str, ...]
    """Used models with unknown prices: their cost comes on top."""
    max_trials: int | None
    estimated_tokens: int | None
    """If every trial uses as much as a calm one and `max_trials` are run; None if their number is not limited."""
    estimated_usd: float | None


Status = Literal["pass", "fail", "error"]


class Replica(Struct, frozen=True, omit_defaults=True):
    """One trial of a case: its rules combined into one number."""

    trial: str
    status: Status
    composite: float | None = None
    """0-1; None if a rule could not be judged."""
    replica: int = 0
    reason: str = ""
    """Why it did not pass."""
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
    """The mean composite of its replicas; None if one has none."""
    unmet: tuple[str, ...] = ()
    """Rules whose faults no trial met: if they passed, they are unproven and score nothing."""
    undecided: tuple[str, ...] = ()
    """For an unproven case: rules that are unproven for another reason than an unmet fault."""
    unproven_only: bool = False
    """It would have passed without those rules: nobody is to blame, although its status is error."""
    replicas: tuple[Replica, ...] = ()
    reason: str = ""
    causes: tuple[CauseKey, ...] = ()
    """Why it did not pass, as values: those of the replica behind `reason`."""
    variation: Variation | None = None
    """For a mutation: how it was made."""
    session: str = ""
    """For a replayed session: its id."""
    expected_failure: str = ""
    """What went wrong when the session was recorded, shown next to the new result."""
    failed: tuple[str, ...] = ()
    """For a mutation or a session: the rules that failed in one of its replicas."""
    obeyed: bool = False
    """For an attack: it succeeded in a replica."""


class Share(Struct, frozen=True, omit_defaults=True):
    """The share of the decided cases that passed."""

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
    """The agent's results on mutated prompts."""

    robustness: float | None
    """0-1, weighted, over all decided mutations."""
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
    """The number of rules with a cell that counted."""
    paired: PairedDifference | None = None
    """Chaos compared with calm; None if a scenario of either kind is missing."""
    judged: int = 0
    """Cells that counted: passed or failed."""
    total: int = 0
    """Cells whose `when` applies."""
    counts: dict[str, int] = field(default_factory=dict)
    """Cells by outcome."""
    trials: int = 0
    replicas: int = 1
    unasked: int = 0
    """Trials that a budget left out."""
    critical_failed: tuple[str, ...] = ()
    """`invariant in scenario` of each critical cell that failed."""
    tolerated: tuple[str, ...] = ()
    """Failed cells that `min_score` tolerates."""
    vacuous: tuple[str, ...] = ()
    """Chaos scenarios in which no trial met any fault."""
    flaky: int = 0
    pass_hat: dict[str, float] = field(default_factory=dict)
    """pass^k by k, the mean over cells, if there are several replicas."""
    reasons: tuple[str, ...] = ()
    """Why the verdict is what it is, for people."""
    reason_codes: tuple[str, ...] = ()
    """The codes of these reasons, from `codes.toml`; empty if the run passed."""
    min_score: float | None = None
    best: float | None = None
    """The score if every harness error had passed; None if there is none."""
    attacks: Attacks | None = None
    spent: Spent | None = None
    mutation: MutationScore | None = None
    """For a mutation run: the numbers behind `value`."""
    shard: str = ""
    """`2/4`: this is one shard. All shards together decide the verdict, so it has not passed yet."""
