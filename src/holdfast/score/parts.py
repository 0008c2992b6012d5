"""The verdict on a complete run: its cases, and its contract if it has one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from holdfast.model.score import Case, Score
from holdfast.score.ruling import (
    BROKEN,
    HELD,
    INTERRUPTED,
    PRECEDENCE,
    UNPROVEN,
    VIOLATED,
    Reason,
    ScoreOptions,
    report_left_out,
)


def combine_with_cases(
    contract: Score, matrix: Sequence[Reason] | None, cases: Sequence[Case], options: ScoreOptions
) -> Score:
    """Return the contract's numbers with the verdict of the complete run, which the cases decide.

    `matrix` is what the contract decides; None: there is no matrix, and so there are no such numbers.
    """
    unproven = contract.counts.get("unproven", 0)
    reasons = list(_iter_reasons(cases, options, unproven if matrix is None else 0))
    reasons += () if options.interrupted else matrix or ()
    reasons += report_left_out(options)
    reasons.sort(key=lambda one: PRECEDENCE.index(one.exit_code))
    code = reasons[0].exit_code if reasons else HELD
    held = (_format_held(cases), *(_iter_other_results(contract) if matrix is not None else ()))
    texts, codes = tuple(one.text for one in reasons) or held, tuple(one.code for one in reasons)
    if matrix is not None:
        return replace(contract, passed=code == HELD, exit_code=code, reasons=texts, reason_codes=codes)
    # A scenario without a matrix has rules but no cells: only spending and counts remain.
    return Score(
        value=None,
        passed=code == HELD,
        exit_code=code,
        counts=contract.counts,
        trials=contract.trials,
        replicas=contract.replicas,
        unasked=contract.unasked,
        reasons=texts,
        attacks=contract.attacks,
        spent=contract.spent,
    )


def combine_with_forbidden(contract: Score, cases: Sequence[Case], options: ScoreOptions) -> Score:
    """Return the verdict on cells if rules of the cases were left out.

    `cases` are those with a possible forbidden action.
    """
    if not cases or options.interrupted:
        return contract
    reasons = list(_iter_reasons(cases, options, 0))
    if contract.exit_code != HELD:
        coded = zip(contract.reasons, contract.reason_codes, strict=True)
        reasons += [Reason(contract.exit_code, text, code) for text, code in coded]
    reasons.sort(key=lambda one: PRECEDENCE.index(one.exit_code))
    if not reasons:
        return contract
    return replace(
        contract,
        passed=False,
        exit_code=reasons[0].exit_code,
        reasons=tuple(one.text for one in reasons),
        reason_codes=tuple(one.code for one in reasons),
    )


def has_passed(cases: Sequence[Case]) -> bool:
    """Whether the scenario part passed: at least one case, and each passed and met its faults."""
    return bool(cases) and all(case.status == "pass" for case in cases)


def _iter_reasons(cases: Sequence[Case], options: ScoreOptions, unproven: int) -> Iterator[Reason]:
    """Yield the reasons of the cases; `unproven` is the number of unproven rules that no matrix counts."""
    if options.interrupted:
        yield Reason(INTERRUPTED, "the run was interrupted", "interrupted")
    failed = sum(case.status == "fail" for case in cases)
    broken = sum(_is_broken(case, options) for case in cases)
    if failed:
        yield Reason(VIOLATED, f"{failed} of {_count_cases(len(cases))} failed", "cases-failed")
    if options.interrupted:  # trials that did not run are not an error, and prove nothing either way
        return
    if broken > options.max_errors:
        yield Reason(BROKEN, f"{_count_cases(broken)} could not be judged: harness error", "harness-errors")
    yield from _iter_undecided_reasons(cases, options)
    if options.strict and unproven:
        yield Reason(UNPROVEN, f"unproven rules: {unproven}, but none is allowed (strict)", "unproven-strict")


def _is_broken(case: Case, options: ScoreOptions) -> bool:
    """Whether a harness error broke the case; one that waits for trials that were left out is not broken."""
    if case.status != "error" or case.unproven_only:
        return False
    return (
        not (options.unrun or options.unasked)
        or not case.replicas
        or any(one.status == "error" for one in case.replicas)
    )


def _iter_undecided_reasons(cases: Sequence[Case], options: ScoreOptions) -> Iterator[Reason]:
    unproven = [case for case in cases if case.unproven_only]
    vacuous = sum(bool(case.unmet) and not case.undecided for case in unproven)
    others = len(unproven) - vacuous
    if vacuous and not options.allow_vacuous:
        text = f"{vacuous} of {_count_cases(len(cases))} undecided: no trial met a fault that its rules need"
        yield Reason(UNPROVEN, text, "cases-undecided")
    if others:
        text = f"{others} of {_count_cases(len(cases))} undecided: rules are unproven for reasons outside the agent"
        yield Reason(UNPROVEN, text, "cases-undecided")
    if not vacuous and not others and all(case.status == "error" for case in cases):
        yield Reason(UNPROVEN, "no case was decided", "nothing-counted")


def _iter_other_results(contract: Score) -> Iterator[str]:
    """Yield the other results of the matrix, if it decides nothing."""
    failed = contract.counts.get("fail", 0)
    if failed and contract.min_score is None:
        yield f"{failed} cell{'' if failed == 1 else 's'} that failed decide{'s' if failed == 1 else ''} nothing here"
    elif contract.exit_code == HELD:
        yield from contract.reasons


def _format_held(cases: Sequence[Case]) -> str:
    unproven = sum(case.unproven_only for case in cases)
    return f"no case failed, {unproven} of {_count_cases(len(cases))} unproven" if unproven else "every case passed"


def _count_cases(count: int) -> str:
    return f"{count} case{'' if count == 1 else 's'}"
