from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_words import Golden
from holdfast.model.score import Score
from holdfast.report.wording import format_paired
from holdfast.score.summary import RatePair, compute_paired_difference


def test_the_difference_is_the_mean_over_rules_and_prompts():
    found = compute_paired_difference(
        [RatePair(0, 1.0, 0.5), RatePair(0, 1.0, 1.0), RatePair(1, 0.5, 0.0), RatePair(1, 1.0, 1.0)]
    )
    assert found is not None
    assert (found.points, found.pairs, found.interval.method, found.interval.prompts) == (-25.0, 4, "paired", 2)
    assert compute_paired_difference([]) is None


def test_rules_of_one_prompt_are_worth_one():
    one = compute_paired_difference([RatePair(n, 1.0, float(n > 4)) for n in range(20)])
    ten = compute_paired_difference([RatePair(n, 1.0, float(n > 4)) for n in range(20)] * 10)
    assert one is not None
    assert ten is not None
    assert (one.points, one.interval) == (ten.points, ten.interval)
    assert (one.pairs, ten.pairs) == (20, 200)


rates = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(st.lists(st.builds(RatePair, st.integers(0, 30), rates, rates), min_size=1, max_size=160))
def test_the_interval_holds_the_difference_and_is_never_of_zero_width(pairs):
    found = compute_paired_difference(pairs)
    assert found is not None
    assert -100.0 <= found.interval.low <= found.points <= found.interval.high <= 100.0
    assert found.interval.low < found.interval.high


def held(prompts: int, rules: int, hit: float, lump: bool, runs: int) -> float:
    """How often the interval holds the truth, where calm passes 0.95 and chaos takes `hit` of it."""
    rng, count = Random(f"{prompts} {rules} {hit} {lump}"), 0
    for _ in range(runs):
        pairs = []
        for prompt in range(prompts):
            lost = rng.random() < hit
            rate = (0.0 if lost else 0.95) if lump else 0.95 * (1 - hit)
            pairs += [RatePair(prompt, float(rng.random() < 0.95), float(rng.random() < rate)) for _ in range(rules)]
        found = compute_paired_difference(pairs)
        assert found is not None
        count += found.interval.low <= -95.0 * hit <= found.interval.high
    return count / runs


@pytest.mark.parametrize("lump", [False, True])
@pytest.mark.parametrize(("prompts", "least"), [(3, 0.9), (8, 0.9), (20, 0.92)])
def test_the_interval_holds_the_truth(prompts, least, lump):
    assert held(prompts, 4, 0.1, lump, 400) >= least


@pytest.mark.long
@pytest.mark.parametrize("lump", [False, True])
@pytest.mark.parametrize("hit", [0.0, 0.02, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("rules", [1, 4, 10])
@pytest.mark.parametrize(
    ("prompts", "least"), [(2, 0.9), (5, 0.9), (8, 0.9), (12, 0.9), (20, 0.93), (50, 0.93), (200, 0.93)]
)
def test_the_interval_holds_the_truth_whatever_chaos_does(prompts, least, rules, hit, lump):
    assert held(prompts, rules, hit, lump, 2000) >= least - 0.01


@pytest.mark.parametrize(
    "pairs",
    [
        [RatePair(n, 1.0, float(n > 4)) for n in range(40)],
        [RatePair(n, 1.0, 1.0) for n in range(40)],
        [RatePair(n, float(n > 0), 1.0) for n in range(5)],
        [RatePair(n, float(n > 0), 1.0) for n in range(4)],
    ],
    ids=["costs", "no difference", "gains", "too few prompts"],
)
def test_the_headline_says_what_chaos_costs(pairs, golden: Golden):
    found = compute_paired_difference(pairs)
    assert found is not None
    golden(format_paired(Score(50.0, False, 1, paired=found)))
