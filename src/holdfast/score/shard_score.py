"""The verdict on a shard of a run: what holds whatever the other shards bring. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.model.overall import PartResult
from holdfast.model.score import Score
from holdfast.score.overall import OverallScore, overall_score
from holdfast.score.ruling import BROKEN, HELD, INTERRUPTED, VIOLATED, ScoreOptions

_MERGE = "holdfast merge joins the shards and decides"


def of_shard(score: Score, options: ScoreOptions) -> Score:
    """The score of a share, with the exit code of what it alone decides.

    A rule that failed here has failed: the replicas of a question are all in one shard. A score below a minimum, a
    scenario that met none of its faults and a rule of which no cell counted are told of the whole, by `merge`.
    """
    code, why = _decided(score, options)
    return replace(score, shard=options.shard, passed=False, exit_code=code, reasons=(why,))


def whole_of_shard(parts: Sequence[PartResult], shard: str) -> OverallScore:
    """Of a share of every part: what failed in it has failed; it has no score, and holds nothing by itself."""
    found = overall_score([replace(part, passed=False) for part in parts])
    trials = sum(part.trials for part in parts)
    stored = f"shard {shard.replace('/', ' of ')}: {trials} trial{'' if trials == 1 else 's'} stored; {_MERGE}"
    failed = [part for part in found.parts if part.exit_code != HELD]
    reasons = found.reasons[: len(failed)] if failed else (stored,)
    return OverallScore(found.parts, None, found.exit_code if failed else HELD, reasons)


def _decided(score: Score, options: ScoreOptions) -> tuple[int, str]:
    shard, merge = f"shard {options.shard.replace('/', ' of ')}", _MERGE
    if score.exit_code == INTERRUPTED:
        return INTERRUPTED, "the run was interrupted"
    failed = score.counts.get("fail", 0)
    if score.critical_failed or (failed and score.min_score is None and score.exit_code == VIOLATED):
        many = len(score.critical_failed) or failed
        kind = "critical " if score.critical_failed else ""
        return VIOLATED, f"{shard}: {many} {kind}failure{'' if many == 1 else 's'}; {merge}"
    broken = score.counts.get("error", 0)
    if broken > options.max_errors:
        return BROKEN, f"{shard}: {broken} could not be judged: our side broke"
    trials = f"{score.trials} trial{'' if score.trials == 1 else 's'}"
    return HELD, f"{shard}: {trials} stored; {merge}"
