from __future__ import annotations

from itertools import combinations
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.score.intervals import (
    PromptSum,
    compute_effective_n,
    compute_exact_limits,
    compute_few_cells_interval,
    compute_next_run_interval,
    compute_pass_hat,
    compute_score_interval,
    compute_wilson,
)


def test_wilson_gives_known_values():
    found = compute_wilson(8, 10)
    assert (found.low, found.high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert found.method == "wilson"
    assert compute_wilson(0, 5).low == 0.0
    assert compute_wilson(5, 5).high == 1.0
    assert compute_wilson(5, 5).low == pytest.approx(0.5655, abs=1e-4)


@settings(deadline=None)
@given(st.integers(1, 500), st.data())
def test_wilson_holds_the_rate_and_is_never_of_zero_width(n, data):
    c = data.draw(st.integers(0, n))
    found = compute_wilson(c, n)
    assert 0.0 <= found.low <= c / n <= found.high <= 1.0
    assert found.low < found.high


def test_kish_counts_equal_weights_fully_and_unequal_ones_less():
    assert compute_effective_n([(2.0, 7)]) == 7.0
    assert compute_effective_n([(3, 4), (1, 3)]) == pytest.approx(225 / 39)
    assert compute_effective_n([]) == 0.0


@settings(deadline=None)
@given(st.integers(1, 6), st.data())
def test_pass_hat_k_is_the_share_of_all_k_subsets_that_pass(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    tries = [i < c for i in range(n)]
    groups = list(combinations(tries, k))
    assert compute_pass_hat(c, n, k) == pytest.approx(sum(map(all, groups)) / len(groups))


@given(st.integers(1, 300), st.data())
def test_pass_hat_k_is_the_quotient_to_the_last_digit_however_it_is_reckoned(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert compute_pass_hat(c, n, k) == comb(c, k) / comb(n, k)


def test_pass_hat_k_refuses_more_tries_than_there_were():
    with pytest.raises(ValueError, match="1 to 3"):
        compute_pass_hat(2, 3, 4)


def test_a_score_of_prompts_holds_its_rate_and_says_what_it_rests_on():
    found = compute_score_interval([PromptSum(3.0, 4.0, 4.0)] * 10)
    assert found is not None
    assert 0.0 < found.low < 75.0 < found.high < 100.0
    assert (found.method, found.prompts, found.approximate) == ("bootstrap", 10, True)
    few, many = compute_score_interval([PromptSum(1.0, 1.0)] * 7), compute_score_interval([PromptSum(1.0, 1.0)] * 20)
    assert few is not None
    assert many is not None
    assert (few.method, few.approximate, many.method, many.approximate) == ("kish", True, "bootstrap", False)
    assert few.low < many.low < 100.0 == many.high
    assert compute_score_interval([]) is None
    assert compute_score_interval([PromptSum(0.0, 0.0)]) is None


def test_tries_of_one_prompt_that_agree_are_worth_one():
    apart = compute_score_interval([PromptSum(5.0, 10.0, 10.0)] * 20)
    alike = compute_score_interval([PromptSum(10.0, 10.0, 10.0)] * 10 + [PromptSum(0.0, 10.0, 10.0)] * 10)
    single = compute_score_interval([PromptSum(1.0, 1.0)] * 10 + [PromptSum(0.0, 1.0)] * 10)
    assert apart is not None
    assert alike is not None
    assert single is not None
    assert apart.high - apart.low < 0.5 * (alike.high - alike.low)
    assert (alike.low, alike.high) == (single.low, single.high)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(0.1, 9.0)), min_size=1, max_size=30))
def test_no_score_has_an_interval_of_zero_width(tried):
    groups = [PromptSum(c * w, (c + f) * w, (c + f) * w * w) for c, f, w in tried if c + f]
    found = compute_score_interval(groups)
    if found is None:
        assert not groups
        return
    rate = 100.0 * sum(one.weight_passed for one in groups) / sum(one.weight_total for one in groups)
    assert 0.0 <= found.low <= rate + 0.01
    assert rate - 0.01 <= found.high <= 100.0
    assert found.low < found.high


def test_few_cells_have_wilsons_limits_but_for_the_ends():
    found = compute_wilson(0.6 * 5.8, 5.8)
    assert compute_few_cells_interval(0.6, 5.8, 2, 5) == (
        pytest.approx(found.low),
        pytest.approx(found.high, abs=0.002),
    )
    assert compute_few_cells_interval(1.0, 1.0, 0, 1) == (pytest.approx(0.05), 1.0)
    assert compute_few_cells_interval(0.0, 1.0, 1, 0) == (0.0, pytest.approx(0.95))
    assert compute_few_cells_interval(0.75, 4.0, 1, 3)[1] == pytest.approx(0.95**0.25)
    assert compute_few_cells_interval(0.25, 4.0, 3, 1)[0] == pytest.approx(1 - 0.95**0.25)
    low, high = compute_few_cells_interval(0.5, 4.0, 2, 2)
    assert 0.0 < low < 0.2
    assert high == pytest.approx(1 - low)


def test_the_next_run_may_differ_even_where_nothing_failed():
    low, high = compute_next_run_interval(1.0, 20.0)
    assert 0.7 < low < 0.9
    assert high == 1.0
    assert compute_next_run_interval(0.0, 20.0) == (0.0, pytest.approx(1 - low))


def test_exact_limits_give_known_values():
    assert compute_exact_limits(8, 10) == (pytest.approx(0.44390, abs=1e-5), pytest.approx(0.97479, abs=1e-5))
    assert compute_exact_limits(0, 20) == (0.0, pytest.approx(0.16843, abs=1e-5))
    assert compute_exact_limits(20, 20) == (pytest.approx(1 - 0.16843, abs=1e-5), 1.0)
