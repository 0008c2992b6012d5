"""A run in the history: its spec, its result, and each rule in each scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.verdict import Outcome


class RuleTrend(Struct, frozen=True, omit_defaults=True):
    """A rule in a scenario over runs, oldest first; None if a run did not have it."""

    rule: str
    scenario: str
    outcomes: tuple[Outcome | None, ...]
    passed_in: str = ""
    """The last run in which it passed before it failed."""
    failed_in: str = ""
    """The first run in which it then failed; empty if it never went from pass to fail."""
    failed_commit: str = ""
    passed_commit: str = ""
    failed_dirty: bool = False
    """That run had uncommitted changes."""
    passed_dirty: bool = False
    mended_in: str = ""
    """The run in which it passed again after that."""

    @property
    def changed(self) -> bool:
        return len({one for one in self.outcomes if one in ("pass", "fail")}) > 1


def build_rule_trends(runs: Sequence[PastRun]) -> Iterator[RuleTrend]:
    """Yield every rule in every scenario of these runs, which are of one part of one file, oldest first."""
    by_run = [{(cell.rule, cell.scenario): cell.outcome for cell in run.cells} for run in runs]
    for key in dict.fromkeys(key for known in reversed(by_run) for key in known):
        yield _build_rule(*key, [known.get(key) for known in by_run], runs)


def _build_rule(rule: str, scenario: str, outcomes: Sequence[Outcome | None], runs: Sequence[PastRun]) -> RuleTrend:
    """Return the last change from pass to fail; undecided runs in between do not count."""
    trend = RuleTrend(rule, scenario, tuple(outcomes))
    before: PastRun | None = None
    passing = False
    for run, outcome in zip(runs, outcomes, strict=True):
        if outcome == "pass":
            if trend.failed_in and not trend.mended_in and not passing:
                trend = replace(trend, mended_in=run.id)
            before, passing = run, True
        elif outcome == "fail":
            if passing and before is not None:
                trend = replace(
                    trend,
                    passed_in=before.id,
                    passed_commit=before.commit,
                    passed_dirty=before.dirty,
                    failed_in=run.id,
                    failed_commit=run.commit,
                    failed_dirty=run.dirty,
                    mended_in="",
                )
            passing = False
    return trend


def drop_explained_cases(trends: Iterable[RuleTrend]) -> list[RuleTrend]:
    """Leave out the cases of a scenario that has a rule here: the cases fail with their rules."""
    listed = list(trends)
    by_rule = {one.scenario for one in listed if one.rule != CASES}
    return [one for one in listed if one.rule != CASES or one.scenario not in by_rule]


CASES = "(cases)"
"""The rule name for all cases of a scenario. They may fail without a rule, because of a forbidden action."""

UnendedState = Literal["", "running", "killed"]
UNENDED: dict[UnendedState, str] = {"running": "it is running", "killed": "it was killed before its end"}
"""The note of a run that has not ended."""


class PastCell(Struct, frozen=True, omit_defaults=True):
    """A rule in a scenario at the end of a run."""

    rule: str
    scenario: str
    """With its params, if it has any: `down [region=eu]`."""
    outcome: Outcome
    critical: bool = False
    passes: int = 0
    fails: int = 0
    errors: int = 0
    unproven: int = 0


class PastRun(Struct, frozen=True, omit_defaults=True):
    """A row of the history. For a run that cannot be read, `note` says why, and nothing is concluded from it."""

    id: str
    """`0007`, or `0007/contract` for a part."""
    part: str = ""
    """`contract`, `scenario` and so on; `ci` for a multi-part run; empty if it cannot be read."""
    shard: str = ""
    """`2/4`: one shard of a run; its part's name contains it, too."""
    started: str = ""
    duration_s: float = 0.0
    spec: str = ""
    """The file itself, following links."""
    spec_digest: str = ""
    agent_digest: str = ""
    seed: int = 0
    version: str = ""
    commit: str = ""
    dirty: bool = False
    """The run had uncommitted changes."""
    branch: str = ""
    ended: bool = False
    """Whether it finished or was interrupted; otherwise it is running, or was killed."""
    complete: bool = False
    """Everything planned was asked."""
    whole: bool = False
    """Everything in the file was planned: no selection, no stop at the first failure."""
    score: float | None = None
    low: float | None = None
    """The lower end of the score's 95 % interval; None if it has none."""
    high: float | None = None
    shows_interval: bool = False
    """Enough prompts support the interval for a page to show it."""
    overall: float | None = None
    """The overall score of the multi-part run that it is or belongs to."""
    passed: bool = False
    in_failed_run: bool = False
    """It is part of a failed `ci` run, whatever its own result."""
    exit_code: int | None = None
    trials: int = 0
    judged: int = 0
    total: int = 0
    counts: dict[str, int] = {}
    """Cells by outcome."""
    cases: int = 0
    cases_passed: int = 0
    critical_failed: tuple[str, ...] = ()
    calls: int = 0
    """The agent's calls, as far as known."""
    cost_usd: float | None = None
    """Their cost, if a price is known."""
    note: str = ""
    """Why it cannot be read."""
    state: UnendedState = ""
    """The current state of a run that has not ended. The history does not store it."""
    cells: tuple[PastCell, ...] = ()

    @property
    def is_unended(self) -> bool:
        """Whether it can be read, and is running or was killed."""
        return not self.ended and not self.note

    @property
    def order(self) -> tuple[int, str]:
        """The sort key of runs, oldest first."""
        number, _, part = self.id.partition("/")
        return int(number), part

    @property
    def is_point(self) -> bool:
        """Whether it is a point of the file's history: everything in the file was asked, and the run finished."""
        return self.whole and self.complete

    @property
    def good(self) -> bool:
        """Whether everything was asked and passed."""
        return self.is_point and self.passed and not self.in_failed_run

    @property
    def level(self) -> float | None:
        """0-100: its score; without one, the share of cases that passed."""
        return 100 * self.cases_passed / self.cases if self.score is None and self.cases else self.score

    @property
    def interval_ends(self) -> dict[str, float | None]:
        """The ends of the interval as a page shows them; empty for few prompts."""
        return {"low": self.low, "high": self.high} if self.shows_interval else {"low": None, "high": None}

    @property
    def short_commit(self) -> str:
        """`5b0f9c27`, with a + for uncommitted changes; empty if none is known."""
        return self.commit[:8] + "+" * (self.dirty and bool(self.commit))
