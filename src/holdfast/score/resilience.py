"""Combines cells into one number: the resilience of a contract, with its interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import fsum

from holdfast.model.score import Interval, Score
from holdfast.model.verdict import OUTCOMES
from holdfast.score.cell import Tries
from holdfast.score.intervals import (
    PROMPTS_FOR_BOOTSTRAP,
    compute_effective_n,
    compute_few_cells_interval,
    compute_next_run_interval,
    compute_pass_hat,
    round_interval,
)
from holdfast.score.ruling import Reason, ScoreOptions, decide_contract
from holdfast.score.summary import Summary
from holdfast.score.tally import Tally

_DEFAULT = ScoreOptions()


def compute_resilience(tally: Tally, options: ScoreOptions = _DEFAULT) -> Score:
    """Return the contract's score, verdict and exit code, from everything added so far."""
    return score_contract(tally, options)[0]


def score_contract(tally: Tally, options: ScoreOptions) -> tuple[Score, tuple[Reason, ...]]:
    """Return the same, and the reasons that still decide when cases have the verdict."""
    summary, replicas = Summary(tally), tally.spec.replicas
    vacuous = tally.find_vacuous_scenarios(unasked=options.unasked > 0)
    least = options.min_score if options.min_score is not None else tally.spec.scoring.min_score
    ruling = decide_contract(summary, vacuous, least, options)
    score = Score(
        value=_round_score(summary.sum_weights().score),
        passed=ruling.exit_code == 0,
        exit_code=ruling.exit_code,
        interval=_compute_interval(tally, summary),
        calm=_round_score((summary.outside if tally.spec.beside else summary.sum_weights(chaos=False)).score),
        chaos=_round_score(summary.sum_weights(chaos=True).score),
        rules=len(summary.rules),
        paired=summary.beside.compute_difference() if summary.beside is not None else None,
        judged=summary.count("pass", "fail"),
        total=summary.count("pass", "fail", "error", "unproven"),
        counts={outcome: summary.count(outcome) for outcome in OUTCOMES},
        trials=tally.trials,
        replicas=replicas,
        unasked=options.unasked,
        critical_failed=ruling.critical,
        tolerated=ruling.tolerated,
        vacuous=vacuous,
        flaky=summary.flaky,
        pass_hat=_compute_pass_hats(summary.tries, replicas) if summary.tries else {},
        reasons=ruling.reasons,
        reason_codes=ruling.reason_codes,
        min_score=least,
        best=_round_score(summary.sum_weights().best) if summary.count("error") else None,
        attacks=tally.attacks.build_result(),
        spent=tally.spending.build_result(),
    )
    return score, ruling.beside_cases


def _round_score(score: float | None) -> float | None:
    return None if score is None else round(score, 2)


def _compute_interval(tally: Tally, summary: Summary) -> Interval | None:
    """Return the interval by prompts if there are enough, otherwise Wilson's interval with Kish's effective n.

    Cells that share trials count as one: until one has failed, nobody knows whether a bad trial fails them all.
    """
    score, plan = summary.sum_weights().score, tally.plan
    if score is None:
        return None
    n = compute_effective_n(list(Counter(summary.group_weights).items()))
    prompts = len({task for rule in summary.rules for task in plan.get_tasks(rule)})
    if prompts >= PROMPTS_FOR_BOOTSTRAP and plan.whole:
        low, high = compute_next_run_interval(score / 100.0, n)
        return round_interval(100.0 * low, 100.0 * high, prompts)
    low, high = compute_few_cells_interval(score / 100.0, n, summary.failed_groups, summary.count("pass"))
    return Interval(round(100.0 * low, 2), round(100.0 * high, 2), "kish", prompts)


def _compute_pass_hats(alike: Mapping[Tries, int], replicas: int) -> dict[str, float]:
    """Return pass^k for every k: the mean over a cell's prompts, then over the cells that have k tries."""
    tried = [pair for tries in alike for pair, _ in tries]
    if all(c == n for c, n in tried):
        return {str(k): 1.0 for k in range(1, min(replicas, max((n for _, n in tried), default=0)) + 1)}
    by_k = {}
    cells = sorted(alike.items())
    for k in range(1, replicas + 1):
        means = [(m, count) for tries, count in cells if (m := _compute_mean_pass_hat(tries, k)) is not None]
        if means:
            by_k[str(k)] = fsum([m * count for m, count in means]) / sum([count for _, count in means])
    return by_k


def _compute_mean_pass_hat(tries: Tries, k: int) -> float | None:
    fit = [(compute_pass_hat(c, n, k), prompts) for (c, n), prompts in tries if n >= k]
    total = sum([prompts for _, prompts in fit])
    return fsum([value * prompts for value, prompts in fit]) / total if total else None
