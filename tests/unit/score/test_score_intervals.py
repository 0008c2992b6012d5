from __future__ import annotations

from itertools import combinations
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.score.intervals import Failing, cluster_bootstrap, kish, pass_hat_k, wilson


def test_wilson_gives_known_values():
    found = wilson(8, 10)
    assert (found.low, found.high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert found.method == "wilson"
    assert wilson(0, 5).low == 0.0
    assert wilson(5, 5).high == 1.0
    assert wilson(5, 5).low == pytest.approx(0.5655, abs=1e-4)


@settings(deadline=None)
@given(st.integers(1, 500), st.data())
def test_wilson_holds_the_rate_and_is_never_of_zero_width(n, data):
    c = data.draw(st.integers(0, n))
    found = wilson(c, n)
    assert 0.0 <= found.low <= c / n <= found.high <= 1.0
    assert found.low < found.high


def test_kish_counts_equal_weights_fully_and_unequal_ones_less():
    assert kish([(2.0, 7)]) == 7.0
    assert kish([(3, 4), (1, 3)]) == pytest.approx(225 / 39)
    assert kish([]) == 0.0


@settings(deadline=None)
@given(st.integers(1, 6), st.data())
def test_pass_hat_k_is_the_share_of_all_k_subsets_that_pass(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    tries = [i < c for i in range(n)]
    groups = list(combinations(tries, k))
    assert pass_hat_k(c, n, k) == pytest.approx(sum(map(all, groups)) / len(groups))


@given(st.integers(1, 300), st.data())
def test_pass_hat_k_is_the_quotient_to_the_last_digit_however_it_is_reckoned(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert pass_hat_k(c, n, k) == comb(c, k) / comb(n, k)


def test_pass_hat_k_refuses_more_tries_than_there_were():
    with pytest.raises(ValueError, match="1 to 3"):
        pass_hat_k(2, 3, 4)


def test_bootstrap_repeats_with_its_seed_and_holds_the_score():
    failing = {Failing(0, 0b1, 0, True): 3.0, Failing(0, 0b110, 0, True): 2.0}
    first = cluster_bootstrap(5.0, failing, [10], 7)
    assert first is not None
    assert first == cluster_bootstrap(5.0, dict(reversed(failing.items())), [10], 7)
    assert first != cluster_bootstrap(5.0, failing, [10], 8)
    assert 0.0 <= first.low <= 50.0 <= first.high <= 100.0
    assert first.method == "bootstrap"


def test_bootstrap_where_every_prompt_fails_says_nothing():
    assert cluster_bootstrap(5.0, {Failing(0, 0b11111111, 0, True): 1.0}, [8], 1) is None
    assert cluster_bootstrap(5.0, {}, [8], 1) is None


def test_a_failed_cell_without_its_fault_met_never_counts_as_passed_in_a_draw():
    other = {Failing(0, 0b10, 0, True): 3.0}
    proven = cluster_bootstrap(1.0, {Failing(0, 0b1, 0, True): 1.0} | other, [8], 1)
    unmet = cluster_bootstrap(1.0, {Failing(0, 0b1, 0, False): 1.0} | other, [8], 1)
    undecided = cluster_bootstrap(1.0, {Failing(0, 0b1, 0b11111110, True): 1.0} | other, [8], 1)
    assert proven != unmet
    assert unmet == undecided
