"""The verdict on a shard of a run: what holds whatever the other shards bring. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.model.overall import PartResult
from holdfast.model.score import Score
from holdfast.reading.words import plural
from holdfast.score.overall import OverallScore, of_parts, with_shares
from holdfast.score.ruling import BROKEN, HELD, INTERRUPTED, PRECEDENCE, VIOLATED, ScoreOptions

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
    shared = with_shares([replace(part, passed=False) for part in parts])
    reasons = sorted(of_parts(shared), key=lambda one: PRECEDENCE.index(one[0]))
    if not reasons:
        return OverallScore(shared, None, HELD, (_stored(shard, sum(part.trials for part in parts)),))
    return OverallScore(shared, None, reasons[0][0], tuple(text for _, text in reasons))


def _decided(score: Score, options: ScoreOptions) -> tuple[int, str]:
    shard = _named(options.shard)
    if score.exit_code == INTERRUPTED:
        return INTERRUPTED, "the run was interrupted"
    failed = score.counts.get("fail", 0)
    if score.critical_failed or (failed and score.min_score is None and score.exit_code == VIOLATED):
        kind = "critical failure" if score.critical_failed else "failure"
        return VIOLATED, f"{shard}: {plural(len(score.critical_failed) or failed, kind)}; {_MERGE}"
    broken = score.counts.get("error", 0)
    if broken > options.max_errors:
        return BROKEN, f"{shard}: {broken} could not be judged: our side broke"
    return HELD, _stored(options.shard, score.trials)


def _stored(shard: str, trials: int) -> str:
    return f"{_named(shard)}: {plural(trials, 'trial')} stored; {_MERGE}"


def _named(shard: str) -> str:
    """`2/4` in words."""
    return f"shard {shard.replace('/', ' of ')}"
