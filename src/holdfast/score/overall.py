"""Combines parts into the overall score, and cases with their contract into one verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.run import PartResult
from holdfast.model.score import Case, Score
from holdfast.model.spec import Part, PartWeights
from holdfast.reading.words import format_plural
from holdfast.score import resilience


class OverallScore(Struct, frozen=True):
    """The parts with their shares, the number, and the deciding reasons."""

    parts: tuple[PartResult, ...]
    value: float | None
    exit_code: int
    reasons: tuple[str, ...]


def get_part_weight(part: Part, weights: PartWeights) -> float:
    """Return the configured share of a part; a scenario and a hunt have none."""
    return 0.0 if part == "scenario" or part == "hunt" else weights.get_weight(part)


def compute_overall_score(
    parts: Sequence[PartResult], least: float | None = None, findings: Sequence[resilience.Reason] = ()
) -> OverallScore:
    """Return the weighted mean of the parts with a score, weights normalised to 1, and the verdict.

    `least` is the minimum of the overall score; `findings` are other reasons that decide, such as a rule that is worse
    than in the baseline.
    """
    shared = add_shares(parts)
    value, best = _compute_mean(shared), _compute_mean(shared, best=True)
    # A part that broke keeps its weight in the best case: if the minimum could still be reached with all its errors
    # passed, the harness is the reason, and the exit code says so.
    reasons = [*iter_part_reasons(shared), *findings, *resilience.report_below_minimum(value, best, least, "overall")]
    if value is None and not any(part.ran and part.passed for part in shared):
        reasons.append(resilience.Reason(resilience.UNPROVEN, "no part has a score", "no-score"))
    held = f"every part that ran passed: {', '.join(part.part for part in parts if part.ran)}"
    ruling = resilience.decide(reasons, (held,))
    return OverallScore(shared, None if value is None else round(value, 2), ruling.exit_code, ruling.reasons)


def add_shares(parts: Sequence[PartResult]) -> tuple[PartResult, ...]:
    """Normalise the weights over the parts that have a score."""
    total = fsum(part.weight for part in parts if part.score is not None)
    return tuple(
        replace(part, share=part.weight / total) if part.score is not None and total else part for part in parts
    )


def _compute_mean(parts: Sequence[PartResult], *, best: bool = False) -> float | None:
    """Return the weighted mean of the scores; `best`: as if every harness error had passed."""
    weighted = [(part.weight, part.best if best and part.best is not None else part.score) for part in parts]
    scores = [(weight, score) for weight, score in weighted if score is not None]
    total = fsum(weight for weight, _ in scores)
    return fsum(weight * score for weight, score in scores) / total if total else None


def iter_part_reasons(parts: Sequence[PartResult]) -> Iterator[resilience.Reason]:
    """Yield the deciding reasons of the parts."""
    for part in parts:
        if part.exit_code != resilience.HELD:
            yield resilience.Reason(
                part.exit_code, f"{part.part}: {part.skipped or ', '.join(part.reasons)}", "part-failed"
            )


def is_interrupted(parts: Sequence[PartResult]) -> bool:
    """Return whether a part was interrupted: the parts after it do not run."""
    return any(part.exit_code == resilience.INTERRUPTED for part in parts)


# -- shard score -----------------------------------------------------------------------------------
_MERGE = "holdfast merge joins the shards and decides"


def score_shard(score: Score, options: resilience.ScoreOptions) -> Score:
    """Return the score of a shard, with the exit code for the results that it decides alone.

    A rule that failed here has failed, because the replicas of a question are all in one shard. A score below a
    minimum, a scenario without a met fault and a rule without a counted cell are decided by `merge`, for the complete
    run.
    """
    code, why = _decide_shard(score, options)
    return replace(
        score, shard=options.shard, passed=False, exit_code=code, reasons=(why,), reason_codes=("one-shard",)
    )


def combine_shard_parts(parts: Sequence[PartResult], shard: str) -> OverallScore:
    """Combine one shard of every part: a failure is final; it has no score, and passes nothing by itself."""
    shared = add_shares([replace(part, passed=False) for part in parts])
    ruling = resilience.decide(iter_part_reasons(shared), (_format_stored(shard, sum(part.trials for part in parts)),))
    return OverallScore(shared, None, ruling.exit_code, ruling.reasons)


def _decide_shard(score: Score, options: resilience.ScoreOptions) -> tuple[int, str]:
    shard = f"shard {options.shard.replace('/', ' of ')}"
    if score.exit_code == resilience.INTERRUPTED:
        return resilience.INTERRUPTED, "the run was interrupted"
    failed = score.counts.get("fail", 0)
    if score.critical_failed or (failed and score.min_score is None and score.exit_code == resilience.VIOLATED):
        kind = "critical failure" if score.critical_failed else "failure"
        return resilience.VIOLATED, f"{shard}: {format_plural(len(score.critical_failed) or failed, kind)}; {_MERGE}"
    broken = score.counts.get("error", 0)
    if broken > options.max_errors:
        return resilience.BROKEN, f"{shard}: {broken} could not be judged: harness error"
    return resilience.HELD, _format_stored(options.shard, score.trials)


def _format_stored(shard: str, trials: int) -> str:
    return f"shard {shard.replace('/', ' of ')}: {format_plural(trials, 'trial')} stored; {_MERGE}"


def combine_with_cases(
    contract: Score, matrix: Sequence[resilience.Reason] | None, cases: Sequence[Case], options: resilience.ScoreOptions
) -> Score:
    """Return the contract's numbers with the verdict of the complete run, which the cases decide.

    `matrix` is what the contract decides; None: there is no matrix, and so there are no such numbers.
    """
    unproven = contract.counts.get("unproven", 0)
    reasons = [*_iter_reasons(cases, options, unproven if matrix is None else 0)]
    reasons += () if options.interrupted else matrix or ()
    undecided = sum(case.unproven_only for case in cases)
    passed = f"no case failed, {undecided} of {format_plural(len(cases), 'case')} unproven" if undecided else ""
    held = (passed or "every case passed", *(_iter_other_results(contract) if matrix is not None else ()))
    ruling = resilience.decide([*reasons, *resilience.report_left_out(options)], held)
    if matrix is not None:
        return replace(contract, **ruling.fields)
    # A scenario without a matrix has rules but no cells: only spending and counts remain.
    return Score(
        value=None,
        **ruling.fields,
        counts=contract.counts,
        trials=contract.trials,
        replicas=contract.replicas,
        unasked=contract.unasked,
        attacks=contract.attacks,
        spent=contract.spent,
    )


def combine_with_forbidden(contract: Score, cases: Sequence[Case], options: resilience.ScoreOptions) -> Score:
    """Return the verdict on cells if rules of the cases were left out.

    `cases` are those with a possible forbidden action.
    """
    if not cases or options.interrupted:
        return contract
    reasons = list(_iter_reasons(cases, options, 0))
    if contract.exit_code != resilience.HELD:
        coded = zip(contract.reasons, contract.reason_codes, strict=True)
        reasons += [resilience.Reason(contract.exit_code, text, code) for text, code in coded]
    return replace(contract, **resilience.decide(reasons, ()).fields) if reasons else contract


def has_passed(cases: Sequence[Case]) -> bool:
    """Return whether the scenario part passed: at least one case, and each passed and met its faults."""
    return bool(cases) and all(case.status == "pass" for case in cases)


def _iter_reasons(
    cases: Sequence[Case], options: resilience.ScoreOptions, unproven: int
) -> Iterator[resilience.Reason]:
    """Yield the reasons of the cases; `unproven` is the number of unproven rules that no matrix counts."""
    yield from resilience.report_interruption(options)
    failed = sum(case.status == "fail" for case in cases)
    broken = sum(_is_broken(case, options) for case in cases)
    if failed:
        yield resilience.Reason(
            resilience.VIOLATED, f"{failed} of {format_plural(len(cases), 'case')} failed", "cases-failed"
        )
    if options.interrupted:  # trials that did not run are not an error, and prove nothing either way
        return
    yield from resilience.report_harness_errors(broken, "case", options)
    yield from _iter_undecided_reasons(cases, options)
    yield from resilience.report_strict(unproven, "rule", options)


def _is_broken(case: Case, options: resilience.ScoreOptions) -> bool:
    """Return whether a harness error broke the case; one that waits for trials that were left out is not broken."""
    if case.status != "error" or case.unproven_only:
        return False
    return (
        not (options.unrun or options.unasked)
        or not case.replicas
        or any(one.status == "error" for one in case.replicas)
    )


def _iter_undecided_reasons(cases: Sequence[Case], options: resilience.ScoreOptions) -> Iterator[resilience.Reason]:
    unproven = [case for case in cases if case.unproven_only]
    vacuous = sum(bool(case.unmet) and not case.undecided for case in unproven)
    others = len(unproven) - vacuous
    of = f"of {format_plural(len(cases), 'case')} undecided"
    if vacuous and not options.allow_vacuous:
        yield resilience.Reason(
            resilience.UNPROVEN, f"{vacuous} {of}: no trial met a fault that its rules need", "cases-undecided"
        )
    if others:
        why = "rules are unproven for reasons outside the agent"
        yield resilience.Reason(resilience.UNPROVEN, f"{others} {of}: {why}", "cases-undecided")
    if not vacuous and not others and all(case.status == "error" for case in cases):
        yield resilience.Reason(resilience.UNPROVEN, "no case was decided", "nothing-counted")


def _iter_other_results(contract: Score) -> Iterator[str]:
    """Yield the other results of the matrix, if it decides nothing."""
    failed = contract.counts.get("fail", 0)
    if failed and contract.min_score is None:
        yield f"{format_plural(failed, 'failed cell')} do{'es' if failed == 1 else ''} not affect this verdict"
    elif contract.exit_code == resilience.HELD:
        yield from contract.reasons
