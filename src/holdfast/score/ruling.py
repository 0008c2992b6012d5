"""The verdict on a contract: passed, failed, harness error, or nothing proven; and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from holdfast.model.score import Cell
from holdfast.score.summary import Summary
from holdfast.spec.references import format_param

HELD, VIOLATED, INTERRUPTED, BROKEN, UNPROVEN = 0, 1, 2, 3, 5


class Reason(NamedTuple):
    """A reason for the verdict: its exit code, a sentence for people, and a code of `verdicts` in `codes.toml`."""

    exit_code: int
    text: str
    code: str


PRECEDENCE = (INTERRUPTED, VIOLATED, BROKEN, UNPROVEN, HELD)
"""Exit codes in order of precedence."""


class ScoreOptions(Struct, frozen=True):
    """The caller's options for a score."""

    min_score: float | None = None
    """0 to 100; None: the spec's."""
    strict: bool = False
    """Any unproven cell gives exit code 5."""
    allow_vacuous: bool = False
    max_errors: int = 0
    interrupted: bool = False
    unrun: int = 0
    """Trials that fail-fast left out: they may have failed."""
    unasked: int = 0
    """Trials that a budget left out: their cells are unproven, and the rest decides."""
    planned: int = 0
    """All trials of the plan, including these."""
    shard: str = ""
    """`2/4`: what was left out belongs to another shard."""


class Ruling(NamedTuple):
    """A verdict with its exit code; the reasons are in order of importance."""

    exit_code: int
    reasons: tuple[str, ...]
    reason_codes: tuple[str, ...]
    critical: tuple[str, ...]
    tolerated: tuple[str, ...]
    beside_cases: tuple[Reason, ...] = ()
    """The reasons that still decide when cases have the verdict: not those of ordinary cells."""


def decide_contract(summary: Summary, vacuous: Sequence[str], least: float | None, options: ScoreOptions) -> Ruling:
    """Return the verdict on all cells. `least` is the minimum, if there is one."""
    critical = [cell for cell in summary.failed if cell.critical]
    others = [cell for cell in summary.failed if not cell.critical]
    sums = summary.sum_weights()
    tolerated = others if least is not None and not _is_below(sums.score, least) else []
    plain = [] if least is not None else list(_report_other_failures(others, len(critical), summary.outside_scenarios))
    deciding = [
        *_report_critical_failures(critical, summary.outside_scenarios),
        *_report_errors(summary.count("error") + summary.outside_errors, options),
        *(report_below_minimum(sums.score, sums.best, least, "score") if sums.score is not None else ()),
        *_report_unproven(summary, vacuous, options),
    ]
    # In order of precedence: the first decides the exit code.
    reasons = sorted(
        (*_report_interruption(options), *deciding, *plain, *report_left_out(options)),
        key=lambda one: PRECEDENCE.index(one.exit_code),
    )
    words = tuple(one.text for one in reasons) or _explain_pass(len(tolerated), summary.count("error"), least, options)
    code = reasons[0].exit_code if reasons else HELD
    codes = tuple(one.code for one in reasons)
    return Ruling(code, words, codes, _list_cell_names(critical), _list_cell_names(tolerated), tuple(deciding))


def _report_interruption(options: ScoreOptions) -> Iterator[Reason]:
    if options.interrupted:
        yield Reason(INTERRUPTED, "the run was interrupted", "interrupted")


def report_left_out(options: ScoreOptions) -> Iterator[Reason]:
    """Yield the reason that trials were left out: they may have failed."""
    if options.unrun:
        of = f"{options.planned} trial{'' if options.planned == 1 else 's'}"
        text = f"{options.unrun} of {of} {'was' if options.unrun == 1 else 'were'} not run"
        yield Reason(UNPROVEN, text, "trials-not-run")


def report_below_minimum(value: float | None, best: float | None, least: float | None, name: str) -> Iterator[Reason]:
    """Yield the reason that the score is below the minimum, even if every harness error had passed.

    Compared as shown.
    """
    if least is not None and value is None:
        text = f"there is no {name} to compare with the minimum {least:g}: nothing that counts was decided"
        yield Reason(UNPROVEN, text, "no-score")
    if least is None or value is None or not _is_below(value, least):
        return
    short = f"{name} {value:.2f} is below the minimum {least:g}"
    if best is not None and not _is_below(best, least):
        # Harness errors may be tolerated, but not if they decide the verdict.
        yield Reason(BROKEN, f"{short}, but harness errors may be the reason", "below-minimum")
    else:
        yield Reason(VIOLATED, short, "below-minimum")


def _report_other_failures(others: Sequence[Cell], critical: int, outside: Collection[str]) -> Iterator[Reason]:
    if others:
        which = _count_cells(len(others), "other" if critical else "")
        yield Reason(VIOLATED, f"{which} failed{_note_outside(others, outside)}", "cells-failed")


def _report_critical_failures(critical: Sequence[Cell], outside: Collection[str]) -> Iterator[Reason]:
    if critical:
        text = f"{_count_cells(len(critical), 'critical')} failed{_note_outside(critical, outside)}"
        yield Reason(VIOLATED, text, "critical-cells-failed")


def _note_outside(failed: Sequence[Cell], outside: Collection[str]) -> str:
    """Return how many of the failed cells the score does not count: without it, passes and failures do not add up."""
    count = sum(cell.scenario in outside for cell in failed)
    return f" ({count} in calm, outside the score)" if count else ""


def _report_errors(errors: int, options: ScoreOptions) -> Iterator[Reason]:
    if errors > options.max_errors:
        yield Reason(BROKEN, f"{_count_cells(errors, 'error')}: harness error", "harness-errors")


def _report_unproven(summary: Summary, vacuous: Sequence[str], options: ScoreOptions) -> Iterator[Reason]:
    if not summary.count("pass", "fail"):
        yield Reason(UNPROVEN, "no cell counted", "nothing-counted")
    else:
        for name in summary.uncounted:
            yield Reason(UNPROVEN, f"critical rule {name}: none of its cells counted", "critical-rule-uncounted")
    if not options.allow_vacuous:
        for name in vacuous:
            yield Reason(UNPROVEN, f"scenario {name} met none of its faults", "vacuous-scenario")
    unproven = summary.count("unproven")
    if options.strict and unproven:
        yield Reason(UNPROVEN, f"{_count_cells(unproven, 'unproven')}, but none is allowed (strict)", "unproven-strict")


def _explain_pass(tolerated: int, errors: int, least: float | None, options: ScoreOptions) -> tuple[str, ...]:
    words = []
    if tolerated and least is not None:
        words.append(f"{_count_cells(tolerated, 'failed')} within the minimum {least:g}")
    if errors:
        words.append(f"{_count_cells(errors, 'error')} of at most {options.max_errors} allowed")
    return tuple(words) or ("every cell that counted passed",)


def _is_below(score: float | None, least: float) -> bool:
    """Whether the score is below the minimum, also with the two decimals shown."""
    return score is not None and score < least and round(score, 2) < least


def _count_cells(n: int, kind: str) -> str:
    return f"{n} {kind} cell{'' if n == 1 else 's'}".replace("  ", " ")


def _list_cell_names(cells: Iterable[Cell]) -> tuple[str, ...]:
    return tuple(map(format_cell_name, cells))


def format_cell_name(cell: Cell) -> str:
    """Return the name of a cell in the verdict: `rule in scenario (region=eu)`."""
    return f"{cell.invariant} in {cell.scenario}{_format_params(cell)}"


def _format_params(cell: Cell) -> str:
    """Return the params, if they distinguish two cells."""
    return f" ({', '.join(f'{k}={format_param(v)}' for k, v in cell.params.items())})" if cell.params else ""
