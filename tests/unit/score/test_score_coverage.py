"""Intervals against known truth: how often they hold it. The long version is run by `make test-long`."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.score.intervals import PromptSum, next_run, pass_hat_k, score_interval, wilson

RATES = (0.02, 0.5, 0.9, 0.99)
LUMPS = (0.0, 0.5, 1.0)
"""How much alike the tries of one prompt are: not at all, by a beta distribution, entirely."""
BAD = -1.0
"""A few prompts fail whole, beside single failures of the others."""
WEIGHTS = ("equal", "mutations", "prompts")
FIVE_SIGMA = 5.0


def prompt_rate(rng: Random, rate: float, lump: float) -> float:
    if lump == 0.0:
        return rate
    if lump == BAD:
        return 0.95 if rng.random() < rate / 0.95 else 0.0
    if lump == 1.0:
        return float(rng.random() < rate)
    return rng.betavariate(rate * (1 / lump - 1), (1 - rate) * (1 / lump - 1))


def prompt_sum(rng: Random, rate: float, tries: int, weights: str) -> PromptSum:
    one = rng.choice((0.2, 0.5, 1.0, 3.0))
    each = [
        {"equal": 1.0, "mutations": rng.choice((0.5, 1.0, 2.0, 3.0)), "prompts": one}[weights] for _ in range(tries)
    ]
    passed = sum(w for w in each if rng.random() < rate)
    return PromptSum(passed, sum(each), sum(w * w for w in each))


def coverage(prompts: int, tries: int, rate: float, lump: float, weights: str, runs: int) -> float:
    rng = Random(f"{prompts} {tries} {rate} {lump} {weights}")
    held = 0
    for _ in range(runs):
        found = score_interval([prompt_sum(rng, prompt_rate(rng, rate, lump), tries, weights) for _ in range(prompts)])
        assert found is not None
        assert found.low < found.high
        held += found.low <= 100.0 * rate <= found.high
    return held / runs


def least(prompts: int, runs: int) -> float:
    """What must be held, less what chance takes away from so few runs."""
    wanted = 0.93 if prompts >= 20 else 0.90
    return wanted - FIVE_SIGMA * (wanted * (1 - wanted) / runs) ** 0.5 / (1 if runs < 1000 else 2.5)


@pytest.mark.parametrize("prompts", [3, 8, 20])
@pytest.mark.parametrize(("rate", "lump"), [(0.5, 0.5), (0.9, 1.0), (0.99, 0.0), (0.855, BAD)])
def test_the_interval_of_a_score_holds_the_truth(prompts, rate, lump):
    assert coverage(prompts, 3, rate, lump, "mutations", 120) >= least(prompts, 120)


@pytest.mark.long
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("lump", LUMPS)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("tries", [1, 3, 10])
@pytest.mark.parametrize("prompts", [3, 5, 8, 12, 20, 50, 200])
def test_the_interval_of_a_score_holds_the_truth_whatever_the_agent(prompts, tries, rate, lump, weights):
    runs = 1500 if prompts <= 50 else 300  # many prompts take long, and are the easy case
    assert coverage(prompts, tries, rate, lump, weights, runs) >= least(prompts, runs)


@pytest.mark.long
@pytest.mark.parametrize("rate", [0.7, 0.855, 0.9, 0.93])
@pytest.mark.parametrize("tries", [3, 10])
@pytest.mark.parametrize("prompts", [5, 8, 12, 20, 50])
def test_prompts_that_fail_whole_are_allowed_for_before_they_are_seen(prompts, tries, rate):
    assert coverage(prompts, tries, rate, BAD, "equal", 1500) >= least(prompts, 1500)


def next_score_held(cells: int, rate: float, lump: float, runs: int) -> float:
    """How often the score of a second run on the same prompts lies where the first says."""
    rng = Random(f"{cells} {rate} {lump}")
    held = 0
    for _ in range(runs):
        rates = [prompt_rate(rng, rate, lump) for _ in range(cells)]
        first, second = (sum(rng.random() < one for one in rates) / cells for _ in range(2))
        low, high = next_run(first, float(cells))
        held += low - 1e-9 <= second <= high + 1e-9
    return held / runs


@pytest.mark.parametrize("cells", [5, 9, 20, 100])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("lump", LUMPS)
def test_the_score_of_a_new_run_lies_where_the_first_says(cells, rate, lump):
    assert next_score_held(cells, rate, lump, 2000) >= 0.93


@pytest.mark.parametrize(("n", "rate"), [(5, 0.5), (10, 0.9), (20, 0.9), (50, 0.5), (200, 0.98)])
def test_wilson_holds_the_rate(n, rate):
    rng = Random(n)
    runs = 2000
    held = 0
    for _ in range(runs):
        found = wilson(sum(rng.random() < rate for _ in range(n)), n)
        held += found.low <= rate <= found.high
    assert held / runs >= 0.92


@pytest.mark.parametrize(("n", "k", "rate"), [(5, 2, 0.8), (10, 5, 0.9), (4, 4, 0.6)])
def test_pass_hat_k_is_right_on_average(n, k, rate):
    rng = Random(k)
    runs = 20_000
    mean = sum(pass_hat_k(sum(rng.random() < rate for _ in range(n)), n, k) for _ in range(runs)) / runs
    assert mean == pytest.approx(rate**k, abs=FIVE_SIGMA * 0.5 / runs**0.5)
