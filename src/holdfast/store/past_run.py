"""A run in the history: its spec, its result, and each rule in each scenario."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from holdfast.model.verdict import Outcome


class Regression(Struct, frozen=True):
    """A rule that passed in a scenario and now fails; `commit` is that of the first run in which it failed."""

    rule: str
    scenario: str
    before: Outcome
    after: Outcome
    commit: str = ""
    run: str = ""
    """The first run in which it failed."""
    dirty: bool = False
    """That run had uncommitted changes."""


def find_last_good(runs: Iterable[PastRun], spec: str, part: str, before: str | None = None) -> str | None:
    """Return the id of the newest complete, passing run of that part of that file; `before` a run."""
    limit = None if before is None else PastRun(before).order
    good = [run for run in runs if run.spec == spec and run.part == part and run.good]
    good = [run for run in good if limit is None or run.order < limit]
    return max(good, key=lambda run: run.order).id if good else None


def compare_runs(before: PastRun, after: PastRun, between: Sequence[PastRun] = ()) -> tuple[Regression, ...]:
    """Return what passed in one run and fails in the other; errors and unproven rules are not regressions.

    The cases of a scenario are named if none of its rules is. Runs `between` the two, of the same part and file, show
    when it began.
    """
    was = {(cell.rule, cell.scenario): cell.outcome for cell in before.cells}
    line = [
        run for run in between if before.order < run.order < after.order and run.is_point and _is_same_part(run, after)
    ]
    line = [*sorted(line, key=lambda run: run.order), after]
    result = []
    for cell in after.cells:
        outcome = was.get((cell.rule, cell.scenario))
        if outcome == "pass" and cell.outcome == "fail":
            first = _find_first_failing(cell, line)
            result.append(
                Regression(cell.rule, cell.scenario, outcome, cell.outcome, first.commit, first.id, first.dirty)
            )
    by_rule = {one.scenario for one in result if one.rule != CASES}
    return tuple(one for one in result if one.rule != CASES or one.scenario not in by_rule)


def _is_same_part(run: PastRun, other: PastRun) -> bool:
    return run.spec == other.spec and run.part == other.part


def _find_first_failing(cell: PastCell, line: Sequence[PastRun]) -> PastRun:
    """Return the run since which it failed wherever it was decided."""
    first = line[-1]
    for run in reversed(line):
        outcome = next((c.outcome for c in run.cells if (c.rule, c.scenario) == (cell.rule, cell.scenario)), None)
        if outcome == "fail":
            first = run
        elif outcome == "pass":
            break
    return first


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
