"""The verdict on a contract: held, violated, our side broke, or nothing proven; and why, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from holdfast.model.score import Cell
from holdfast.score.summary import Summary, Sums

HELD, VIOLATED, INTERRUPTED, BROKEN, UNPROVEN = 0, 1, 2, 3, 5
_SLACK = 1e-9


class ScoreOptions(Struct, frozen=True):
    """What the caller asks of a score."""

    min_score: float | None = None
    """0 to 100; None takes the spec's."""
    strict: bool = False
    """Any unproven cell is exit 5."""
    allow_vacuous: bool = False
    max_errors: int = 0
    interrupted: bool = False


class Ruling(NamedTuple):
    """A verdict with its exit code; reasons are in the order of their weight."""

    exit_code: int
    reasons: tuple[str, ...]
    critical: tuple[str, ...]
    tolerated: tuple[str, ...]


def rule(summary: Summary, vacuous: Sequence[str], least: float | None, options: ScoreOptions) -> Ruling:
    """The verdict on all cells. `least` is the minimum, if there is one."""
    critical = [cell for cell, _ in summary.failed if cell.critical]
    others = [cell for cell, _ in summary.failed if not cell.critical]
    sums = summary.sums()
    tolerated = others if least is not None and not _under(sums.score, least) else []
    # In the order of precedence: the first decides the exit code.
    found = [
        *_interrupted(options),
        *_violated(critical, [] if least is not None else others, sums, least),
        *_broken(summary.count("error"), sums, least, options),
        *_unproven(summary, vacuous, options),
    ]
    words = tuple(text for _, text in found) or _held(len(tolerated), summary.count("error"), least, options)
    return Ruling(found[0][0] if found else HELD, words, _names(critical), _names(tolerated))


_Reason = tuple[int, str]
"""An exit code and why."""


def _interrupted(options: ScoreOptions) -> Iterator[_Reason]:
    if options.interrupted:
        yield INTERRUPTED, "the run was interrupted"


def _violated(critical: Sequence[Cell], others: Sequence[Cell], sums: Sums, least: float | None) -> Iterator[_Reason]:
    if critical:
        yield VIOLATED, f"{_cells(len(critical), 'critical')} failed"
    if others:
        yield VIOLATED, f"{_cells(len(others), 'other' if critical else '')} failed"
    if least is not None and _under(sums.score, least) and _under(sums.best, least):
        yield VIOLATED, f"score {_shown(sums.score, least)} is below the minimum {least:g}"


def _broken(errors: int, sums: Sums, least: float | None, options: ScoreOptions) -> Iterator[_Reason]:
    if errors > options.max_errors:
        yield BROKEN, f"{_cells(errors, 'error')}: our side broke"
    if least is not None and _under(sums.score, least) and not _under(sums.best, least):
        # Errors may be tolerated, but not where they decide the verdict.
        yield BROKEN, f"score {_shown(sums.score, least)} is below the minimum {least:g}, but error cells may be why"


def _unproven(summary: Summary, vacuous: Sequence[str], options: ScoreOptions) -> Iterator[_Reason]:
    if not summary.count("pass", "fail"):
        yield UNPROVEN, "no cell counted"
    if not options.allow_vacuous:
        for name in vacuous:
            yield UNPROVEN, f"scenario {name} met none of its faults"
    unproven = summary.count("unproven")
    if options.strict and unproven:
        yield UNPROVEN, f"{_cells(unproven, 'unproven')}, and none is allowed (strict)"


def _held(tolerated: int, errors: int, least: float | None, options: ScoreOptions) -> tuple[str, ...]:
    words = []
    if tolerated and least is not None:
        words.append(f"{_cells(tolerated, 'failed')} within the minimum {least:g}")
    if errors:
        words.append(f"{_cells(errors, 'error')} of at most {options.max_errors} allowed")
    return tuple(words) or ("every cell that counted passed",)


def _under(score: float | None, least: float) -> bool:
    return score is not None and score < least - _SLACK


def _shown(score: float | None, least: float) -> str:
    """Two decimals; more where two would hide that it is below the minimum."""
    value = score or 0.0
    return f"{value:.2f}" if round(value, 2) < least else f"{value:.6f}"


def _cells(n: int, kind: str) -> str:
    return f"{n} {kind} cell{'' if n == 1 else 's'}".replace("  ", " ")


def _names(cells: Iterable[Cell]) -> tuple[str, ...]:
    return tuple(f"{cell.invariant} in {cell.scenario}{_with(cell)}" for cell in cells)


def _with(cell: Cell) -> str:
    """The params, where they tell two cells apart."""
    return f" ({', '.join(f'{k}={v}' for k, v in cell.params.items())})" if cell.params else ""
