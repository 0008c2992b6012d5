"""Intervals against known truth: how often they hold it. The long version is run by `make test-long`."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from holdfast.score import intervals

RATES = (0.02, 0.5, 0.9, 0.99)
LUMPS = (0.0, 0.5, 1.0)
"""How much alike the tries of one prompt are: not at all, by a beta distribution, entirely."""
BAD = -1.0
"""A few prompts fail whole, beside single failures of the others."""
WEIGHTS = ("equal", "mutations", "prompts")
FIVE_SIGMA = 5.0
CONTRACT_RUNS = 1000


def prompt_rate(rng: Random, rate: float, lump: float) -> float:
    if lump == 0.0:
        return rate
    if lump == BAD:
        return 0.95 if rng.random() < rate / 0.95 else 0.0
    if lump == 1.0:
        return float(rng.random() < rate)
    return rng.betavariate(rate * (1 / lump - 1), (1 - rate) * (1 / lump - 1))


def prompt_sum(rng: Random, rate: float, tries: int, weights: str) -> intervals.PromptSum:
    one = rng.choice((0.2, 0.5, 1.0, 3.0))
    each = [
        {"equal": 1.0, "mutations": rng.choice((0.5, 1.0, 2.0, 3.0)), "prompts": one}[weights] for _ in range(tries)
    ]
    passed = sum(w for w in each if rng.random() < rate)
    return intervals.PromptSum(passed, sum(each), sum(w * w for w in each))


def coverage(prompts: int, tries: int, rate: float, lump: float, weights: str, runs: int) -> float:
    rng = Random(f"{prompts} {tries} {rate} {lump} {weights}")
    held = 0
    for _ in range(runs):
        found = intervals.compute_score_interval(
            [prompt_sum(rng, prompt_rate(rng, rate, lump), tries, weights) for _ in range(prompts)]
        )
        assert found is not None
        assert found.low < found.high
        held += found.low <= 100.0 * rate <= found.high
    return held / runs


def least(prompts: int, runs: int) -> float:
    """What must be held, less what chance takes away from so few runs."""
    wanted = 0.93 if prompts >= 20 else 0.90
    return wanted - FIVE_SIGMA * (wanted * (1 - wanted) / runs) ** 0.5 / (1 if runs < 1000 else 2.5)


@pytest.mark.slow
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
        low, high = intervals.compute_next_run_interval(first, float(cells))
        held += low - 1e-9 <= second <= high + 1e-9
    return held / runs


@pytest.mark.slow
@pytest.mark.parametrize("cells", [5, 9, 20, 100])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("lump", LUMPS)
def test_the_score_of_a_new_run_lies_where_the_first_says(cells, rate, lump):
    assert next_score_held(cells, rate, lump, 1000) >= 0.93


# -- contracts of few prompts ----------------------------------------------------------------------
def few_cells_held(weights: tuple[float, ...], rate: float) -> float:
    """How often the limits hold the rate, where every cell passes at it: exact, over all outcomes there are."""
    n = intervals.compute_effective_n([(weight, 1) for weight in weights])
    outcomes = {(0.0, 0): 1.0}
    for weight in weights:
        after: dict[tuple[float, int], float] = {}
        for (sum_, passed), chance in outcomes.items():
            for at, share in (((sum_ + weight, passed + 1), rate), ((sum_, passed), 1 - rate)):
                after[at] = after.get(at, 0.0) + chance * share
        outcomes = after
    held = 0.0
    for (sum_, passed), chance in outcomes.items():
        low, high = intervals.compute_few_cells_interval(sum_ / sum(weights), n, len(weights) - passed, passed)
        assert low < high
        held += chance * (low - 1e-9 <= rate <= high + 1e-9)
    return held


EQUAL = [(1.0,) * n for n in (1, 2, 3, 4, 5, 7, 10, 16, 30)]
MIXED = [(3.0, 1.0), (3.0, 1.0, 1.0), (3.0, 2.0, 1.0, 1.0), (3.0,) * 4 + (1.0,) * 3, (3.0, 2.0, 1.0) * 4]


@pytest.mark.parametrize("weights", [*EQUAL, *MIXED], ids=str)
def test_the_limits_of_few_cells_hold_the_rate_of_new_runs(weights):
    assert min(few_cells_held(weights, rate / 100) for rate in range(50, 100)) >= 0.90


class Contract(NamedTuple):
    """A contract and an agent: how often each rule holds in each scenario on each prompt."""

    weights: Any
    rates: Any
    """scenario x prompt x rule, of one trial."""
    replicas: int
    alike: float | None
    """How many trials pass or fail all rules by one draw; None: each cell has trials of its own."""

    @property
    def truth(self) -> float:
        """The score of new runs on average."""
        return float(((self.rates**self.replicas).prod(1) @ self.weights).sum() / self.total)

    @property
    def total(self) -> float:
        return float(len(self.rates) * self.weights.sum())

    def failed(self, rng: Any) -> Any:
        """scenario x rule: what fails in one run."""
        shape = (self.replicas, *self.rates.shape)
        luck = rng.random(shape)
        if self.alike is not None:
            shared = (*shape[:-1], 1)
            luck = np.where(rng.random(shared) < self.alike, rng.random(shared), luck)
        return (luck >= self.rates).any((0, 2))

    def score(self, failed: Any) -> float:
        return float(1 - (failed @ self.weights).sum() / self.total)

    def limits(self, failed: Any) -> tuple[float, float]:
        """As `resilience` has them."""
        own = self.alike is None
        groups = np.tile(self.weights, len(failed)) if own else np.full(len(failed), self.weights.sum())
        n, rate = intervals.compute_effective_n([(float(weight), 1) for weight in groups]), self.score(failed)
        if self.rates.shape[1] >= intervals.PROMPTS_FOR_BOOTSTRAP:
            return intervals.compute_next_run_interval(rate, n)
        lost = int(failed.sum() if own else failed.any(1).sum())
        return intervals.compute_few_cells_interval(rate, n, lost, int((~failed).sum()))


def contract(
    rng: Any, rules: int, scenarios: int, prompts: int, replicas: int, rate: float, by: str, alike: float | None
) -> Contract:
    """An agent whose rate is this one over all cells, and which differs by rule, by scenario, by prompt, or by none."""
    weights = rng.choice([3.0, 2.0, 1.0, 1.0], rules)
    spread = sum(
        rng.normal(0, 2, shape)
        for name, shape in (("rule", (1, 1, rules)), ("scenario", (scenarios, 1, 1)), ("prompt", (1, prompts, 1)))
        if name in by
    )
    low, high = -12.0, 25.0
    for _ in range(40):
        middle = (low + high) / 2
        found = Contract(
            weights, 1 / (1 + np.exp(-(middle + spread + np.zeros((scenarios, prompts, rules))))), replicas, alike
        )
        low, high = (middle, high) if found.truth < rate else (low, middle)
    return found


SHAPES = ((1, 1), (1, 4), (4, 8), (12, 4), (12, 8))
BY = ("", "rule", "scenario", "prompt", "rule scenario prompt")


def contract_held(prompts: int, rules: int, scenarios: int, alike: float | None, runs: int) -> float:
    """The least share of runs whose interval held what it is of, over rates, replicas and ways to differ."""
    least_ = 1.0
    for number, (rate, by) in enumerate(zip((0.5, 0.6, 0.8, 0.9, 0.95, 0.99), (*BY, ""), strict=True)):
        rng = np.random.default_rng([prompts, rules, scenarios, number])
        held = 0
        for run in range(runs):
            if run % 10 == 0:
                agent = contract(rng, rules, scenarios, prompts, (1, 3, 5, 2)[number % 4], rate, by, alike)
            low, high = agent.limits(agent.failed(rng))
            truth = agent.truth if prompts < intervals.PROMPTS_FOR_BOOTSTRAP else agent.score(agent.failed(rng))
            held += low - 1e-9 <= truth <= high + 1e-9
        least_ = min(least_, held / runs)
    return least_


@pytest.mark.long
@pytest.mark.parametrize("alike", [None, 0.3, 0.8])
@pytest.mark.parametrize(("rules", "scenarios"), SHAPES)
@pytest.mark.parametrize("prompts", [2, 7, 8, 20])
def test_the_interval_of_a_contract_holds_the_truth_whatever_the_agent(prompts, rules, scenarios, alike):
    assert contract_held(prompts, rules, scenarios, alike, CONTRACT_RUNS) >= least(prompts, CONTRACT_RUNS)


@pytest.mark.parametrize(("n", "rate"), [(5, 0.5), (10, 0.9), (20, 0.9), (50, 0.5), (200, 0.98)])
def test_wilson_holds_the_rate(n, rate):
    rng = Random(n)
    runs = 2000
    held = 0
    for _ in range(runs):
        found = intervals.compute_wilson(sum(rng.random() < rate for _ in range(n)), n)
        held += found.low <= rate <= found.high
    assert held / runs >= 0.92


@pytest.mark.parametrize(("n", "k", "rate"), [(5, 2, 0.8), (10, 5, 0.9), (4, 4, 0.6)])
def test_pass_hat_k_is_right_on_average(n, k, rate):
    rng = Random(k)
    runs = 20_000
    mean = sum(intervals.compute_pass_hat(sum(rng.random() < rate for _ in range(n)), n, k) for _ in range(runs)) / runs
    assert mean == pytest.approx(rate**k, abs=FIVE_SIGMA * 0.5 / runs**0.5)
