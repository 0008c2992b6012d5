"""The verdict on a whole run: its cases, and its contract where it has one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from holdfast.model.score import Case, Score
from holdfast.score.ruling import BROKEN, HELD, INTERRUPTED, UNPROVEN, VIOLATED, ScoreOptions

_PRECEDENCE = (INTERRUPTED, VIOLATED, BROKEN, UNPROVEN, HELD)


def with_cases(contract: Score, cases: Sequence[Case], options: ScoreOptions, *, matrix: bool) -> Score:
    """The contract's numbers with the verdict of the whole run; without a matrix there are no such numbers."""
    found = list(_reasons(contract, cases, options, matrix=matrix))
    code = min((code for code, _ in found), key=_PRECEDENCE.index, default=HELD)
    said = tuple(text for _, text in sorted(found, key=lambda one: _PRECEDENCE.index(one[0])))
    if matrix and contract.exit_code in (HELD, INTERRUPTED) and code == HELD:
        said = contract.reasons
    held = (_held(cases), *said) if code == HELD else said
    if matrix:
        return replace(contract, passed=code == HELD, exit_code=code, reasons=held)
    # Rules, not cells, are what a scenario without a matrix has: only what was spent and counted stays.
    return Score(
        value=None,
        passed=code == HELD,
        exit_code=code,
        counts=contract.counts,
        trials=contract.trials,
        replicas=contract.replicas,
        reasons=held,
        attacks=contract.attacks,
        spent=contract.spent,
    )


def passed(cases: Sequence[Case]) -> bool:
    """Whether the scenario part held: at least one case, and each of them passed and met its faults."""
    return bool(cases) and all(case.status == "pass" for case in cases)


def _reasons(
    contract: Score, cases: Sequence[Case], options: ScoreOptions, *, matrix: bool
) -> Iterator[tuple[int, str]]:
    if options.interrupted:
        yield INTERRUPTED, "the run was interrupted"
    failed = sum(case.status == "fail" for case in cases)
    broken = sum(case.status == "error" and not case.unproven_only for case in cases)
    if failed:
        yield VIOLATED, f"{failed} of {_cases(len(cases))} failed"
    if options.interrupted:  # what is missing was not reached: that is no error, and proves nothing either way
        return
    if broken > options.max_errors:
        yield BROKEN, f"{_cases(broken)} could not be judged: our side broke"
    if not any(case.status != "error" or (case.unproven_only and options.allow_vacuous) for case in cases):
        yield UNPROVEN, "no case was decided"
    if matrix and contract.exit_code not in (HELD, INTERRUPTED):
        yield from ((contract.exit_code, reason) for reason in contract.reasons)
    elif options.strict and contract.counts.get("unproven"):
        yield UNPROVEN, f"{contract.counts['unproven']} rules unproven, and none is allowed (strict)"


def _held(cases: Sequence[Case]) -> str:
    unproven = sum(case.unproven_only for case in cases)
    return f"no case failed, {unproven} of {_cases(len(cases))} unproven" if unproven else "every case passed"


def _cases(count: int) -> str:
    return f"{count} case{'' if count == 1 else 's'}"
