"""What got worse since a run in which all was well. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from holdfast.model.verdict import Outcome
from holdfast.store.past_run import CASES, PastCell, PastRun


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
