"""A run as the history knows it: what it was of, what it came to, and each rule in each scenario."""

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
    """That run was not of the commit alone: files had been changed since."""


def last_good(runs: Iterable[PastRun], spec: str, part: str, before: str | None = None) -> str | None:
    """The id of the newest run of that part of that file in which everything was asked and held; `before` a run."""
    limit = None if before is None else PastRun(before).order
    good = [run for run in runs if run.spec == spec and run.part == part and run.good]
    good = [run for run in good if limit is None or run.order < limit]
    return max(good, key=lambda run: run.order).id if good else None


def regressions(before: PastRun, after: PastRun, between: Sequence[PastRun] = ()) -> tuple[Regression, ...]:
    """What passed in the one and fails in the other; errors and what is unproven are nobody's regression.

    The cases of a scenario are named where no rule of it is. Of `between`, those of the same part and file that
    lie between the two tell in which run it began.
    """
    was = {(cell.rule, cell.scenario): cell.outcome for cell in before.cells}
    line = [run for run in between if before.order < run.order < after.order and run.is_point and _same(run, after)]
    line = [*sorted(line, key=lambda run: run.order), after]
    found = []
    for cell in after.cells:
        outcome = was.get((cell.rule, cell.scenario))
        if outcome == "pass" and cell.outcome == "fail":
            first = _first_failing(cell, line)
            found.append(
                Regression(cell.rule, cell.scenario, outcome, cell.outcome, first.commit, first.id, first.dirty)
            )
    by_rule = {one.scenario for one in found if one.rule != CASES}
    return tuple(one for one in found if one.rule != CASES or one.scenario not in by_rule)


def _same(run: PastRun, other: PastRun) -> bool:
    return run.spec == other.spec and run.part == other.part


def _first_failing(cell: PastCell, line: Sequence[PastRun]) -> PastRun:
    """The run from which on it failed wherever it was decided."""
    first = line[-1]
    for run in reversed(line):
        outcome = next((c.outcome for c in run.cells if (c.rule, c.scenario) == (cell.rule, cell.scenario)), None)
        if outcome == "fail":
            first = run
        elif outcome == "pass":
            break
    return first


CASES = "(cases)"
"""In the place of a rule: all cases of a scenario. They may fail where no rule does, by something forbidden."""

SHARD = " shard "
"""In the part of a run that is one share of several, before which."""

UnendedState = Literal["", "running", "killed"]
UNENDED: dict[UnendedState, str] = {"running": "it is running", "killed": "it was killed before its end"}
"""What the note of a run that has not ended says of it as it is now."""


class PastCell(Struct, frozen=True, omit_defaults=True):
    """A rule in a scenario, as a run ended."""

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
    """A row of the history. One that cannot be read has a `note` that says why, and nothing is concluded from it."""

    id: str
    """`0007`, or `0007/contract` of a part."""
    part: str = ""
    """`contract`, `scenario` and so on; `ci` of a run of several parts; empty if it cannot be read."""
    started: str = ""
    duration_s: float = 0.0
    spec: str = ""
    """The file itself, links followed."""
    spec_digest: str = ""
    agent_digest: str = ""
    seed: int = 0
    version: str = ""
    commit: str = ""
    dirty: bool = False
    """What was run is not that commit: files were changed since, or were never added."""
    branch: str = ""
    ended: bool = False
    """It came to its end, or was interrupted; else it is running, or was killed."""
    complete: bool = False
    """All that it was to ask was asked."""
    whole: bool = False
    """It was to ask all that the file has: no selection, no stop at the first failure."""
    score: float | None = None
    low: float | None = None
    """Of the score's 95 % interval; None where it has none."""
    high: float | None = None
    shows_interval: bool = False
    """It rests on enough prompts for a page to show it."""
    overall: float | None = None
    """The overall score of the run of several parts that it is, or is a part of."""
    passed: bool = False
    in_failed_run: bool = False
    """A part of a `ci` run that did not pass, whatever the part came to."""
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
    """Of the agent, as far as they were seen."""
    cost_usd: float | None = None
    """What they cost, where a price is known."""
    note: str = ""
    """Why it cannot be read."""
    state: UnendedState = ""
    """Of a run that has not ended: what has become of it by now. The history does not know."""
    cells: tuple[PastCell, ...] = ()

    @property
    def is_unended(self) -> bool:
        """It can be read, and is running or was killed."""
        return not self.ended and not self.note

    @property
    def order(self) -> tuple[int, str]:
        """By which runs are sorted, the oldest first."""
        number, _, part = self.id.partition("/")
        return int(number), part

    @property
    def is_point(self) -> bool:
        """Whether it is a point of the file's history: all that the file has was asked, and the run came to its end."""
        return self.whole and self.complete

    @property
    def good(self) -> bool:
        """Everything was asked, and held."""
        return self.is_point and self.passed and not self.in_failed_run

    @property
    def level(self) -> float | None:
        """0-100: its score; of a run without one, how many of its cases passed."""
        return 100 * self.cases_passed / self.cases if self.score is None and self.cases else self.score

    @property
    def shown_interval(self) -> dict[str, float | None]:
        """The ends of the interval as a page shows them: none of few prompts."""
        return {"low": self.low, "high": self.high} if self.shows_interval else {"low": None, "high": None}

    @property
    def short_commit(self) -> str:
        """`5b0f9c27`, with a + where what was run is not that commit; empty if none is known."""
        return self.commit[:8] + "+" * (self.dirty and bool(self.commit))
