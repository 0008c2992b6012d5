"""Combines parts into the overall score and its verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.overall import PartResult
from holdfast.model.score import Score
from holdfast.model.spec import Part, PartWeights
from holdfast.reading.words import format_plural
from holdfast.score.ruling import (
    BROKEN,
    HELD,
    INTERRUPTED,
    PRECEDENCE,
    UNPROVEN,
    VIOLATED,
    Reason,
    ScoreOptions,
    report_below_minimum,
)


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
    parts: Sequence[PartResult], least: float | None = None, findings: Sequence[Reason] = ()
) -> OverallScore:
    """Return the weighted mean of the parts with a score, weights normalised to 1, and the verdict.

    `least` is the minimum of the overall score; `findings` are other reasons that decide, such as a rule that is worse
    than in the baseline.
    """
    shared = add_shares(parts)
    value, best = _compute_mean(shared), _compute_best(shared)
    reasons = [*iter_part_reasons(shared), *findings, *report_below_minimum(value, best, least, "overall")]
    if value is None and not any(part.ran and part.passed for part in shared):
        reasons.append(Reason(UNPROVEN, "no part has a score", "no-score"))
    reasons.sort(key=lambda one: PRECEDENCE.index(one.exit_code))
    code = reasons[0].exit_code if reasons else HELD
    texts = tuple(one.text for one in reasons) or (_format_held(shared),)
    return OverallScore(shared, None if value is None else round(value, 2), code, texts)


def add_shares(parts: Sequence[PartResult]) -> tuple[PartResult, ...]:
    """Normalise the weights over the parts that have a score."""
    total = fsum(part.weight for part in parts if part.score is not None)
    return tuple(
        replace(part, share=part.weight / total) if part.score is not None and total else part for part in parts
    )


def _compute_mean(parts: Sequence[PartResult]) -> float | None:
    scores = [(part.share, part.score) for part in parts if part.score is not None and part.share]
    return fsum(share * score for share, score in scores) if scores else None


def _compute_best(parts: Sequence[PartResult]) -> float | None:
    """Return the overall score if every harness error had passed: a part that only broke counts, too."""
    known = [(part.weight, part.best if part.best is not None else part.score) for part in parts]
    scores = [(weight, score) for weight, score in known if score is not None]
    total = fsum(weight for weight, _ in scores)
    return fsum(weight * score for weight, score in scores) / total if total else None


def iter_part_reasons(parts: Sequence[PartResult]) -> Iterator[Reason]:
    """Yield the deciding reasons of the parts."""
    for part in parts:
        if part.exit_code != HELD:
            yield Reason(part.exit_code, f"{part.part}: {part.skipped or ', '.join(part.reasons)}", "part-failed")


def _format_held(parts: Sequence[PartResult]) -> str:
    ran = [part.part for part in parts if part.ran]
    return f"every part that ran passed: {', '.join(ran)}"


def is_interrupted(parts: Sequence[PartResult]) -> bool:
    """Whether a part was interrupted: the parts after it do not run."""
    return any(part.exit_code == INTERRUPTED for part in parts)


# -- shard score -----------------------------------------------------------------------------------
_MERGE = "holdfast merge joins the shards and decides"


def score_shard(score: Score, options: ScoreOptions) -> Score:
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
    reasons = sorted(iter_part_reasons(shared), key=lambda one: PRECEDENCE.index(one.exit_code))
    if not reasons:
        return OverallScore(shared, None, HELD, (_format_stored(shard, sum(part.trials for part in parts)),))
    return OverallScore(shared, None, reasons[0].exit_code, tuple(one.text for one in reasons))


def _decide_shard(score: Score, options: ScoreOptions) -> tuple[int, str]:
    shard = _format_shard(options.shard)
    if score.exit_code == INTERRUPTED:
        return INTERRUPTED, "the run was interrupted"
    failed = score.counts.get("fail", 0)
    if score.critical_failed or (failed and score.min_score is None and score.exit_code == VIOLATED):
        kind = "critical failure" if score.critical_failed else "failure"
        return VIOLATED, f"{shard}: {format_plural(len(score.critical_failed) or failed, kind)}; {_MERGE}"
    broken = score.counts.get("error", 0)
    if broken > options.max_errors:
        return BROKEN, f"{shard}: {broken} could not be judged: harness error"
    return HELD, _format_stored(options.shard, score.trials)


def _format_stored(shard: str, trials: int) -> str:
    return f"{_format_shard(shard)}: {format_plural(trials, 'trial')} stored; {_MERGE}"


def _format_shard(shard: str) -> str:
    """Describe `2/4`."""
    return f"shard {shard.replace('/', ' of ')}"
