from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.score.comparison import ALPHA, PairCounts, compare_rules, holm, mcnemar, more_replicas


def test_mcnemar_gives_known_values():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 5) == 1.0
    assert mcnemar(6, 0) == pytest.approx(0.03125)
    assert mcnemar(10, 2) == pytest.approx(0.03857, abs=1e-5)
    assert mcnemar(2, 10) == mcnemar(10, 2)


def test_holm_gives_known_values():
    assert holm([0.01, 0.04, 0.03]) == [pytest.approx(0.03), pytest.approx(0.06), pytest.approx(0.06)]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_p_nor_changes_their_order(ps):
    adjusted = holm(ps)
    assert all(p <= q <= 1.0 for p, q in zip(ps, adjusted, strict=True))
    for (p, a), (q, b) in zip(zip(ps, adjusted, strict=True), zip(ps[1:], adjusted[1:], strict=True), strict=False):
        assert p == q or (p < q) <= (a <= b)


def test_one_attack_that_is_newly_obeyed_is_worse_whatever_p_says():
    (found,) = compare_rules([PairCounts("attacks resisted", both=20, lost=1, gained=5, obeyed=("noise of 'x'",))])
    assert (found.change, found.more_replicas, found.obeyed) == ("worse", None, ("noise of 'x'",))


def test_each_rule_gets_its_word():
    found = compare_rules(
        [
            PairCounts("worse", lost=12, both=8),
            PairCounts("better", gained=12, neither=8),
            PairCounts("same", both=20),
            PairCounts("open", both=17, lost=3),
            PairCounts("even", both=16, lost=2, gained=2),
            PairCounts("nothing"),
        ]
    )
    assert [(one.rule, one.change) for one in found] == [
        ("worse", "worse"), ("better", "better"), ("same", "same"), ("open", "cannot tell"), ("even", "cannot tell"),
    ]  # fmt: skip
    assert (found[0].passed_before, found[0].passed_after) == (20, 8)
    assert found[0].more_replicas is None
    assert found[3].more_replicas is not None
    assert found[4].more_replicas is None


def drawn(rng: Random, lost: float, gained: float, pairs: int, replicas: int = 1) -> PairCounts:
    counts = [0, 0, 0]
    for _ in range(pairs):
        luck = rng.random()
        counts[0 if luck < lost else 1 if luck < lost + gained else 2] += 1
    return PairCounts("r", "", counts[2], counts[0], counts[1], 0, replicas)


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
def test_rules_that_did_not_change_are_rarely_called_worse_or_better(rate):
    rng, runs = Random(3), 600
    wrong = 0
    for _ in range(runs):
        found = compare_rules([drawn(rng, rate / 2, rate / 2, 40) for _ in range(5)])
        wrong += any(one.change in ("worse", "better") for one in found)
    assert wrong / runs <= ALPHA + 0.02


def test_so_many_more_replicas_do_find_the_difference():
    rng, found, runs = Random(5), 0, 300
    seen = PairCounts("r", "", 6, 3, 1, 0, 1)
    more = more_replicas(seen, ALPHA)
    assert more is not None
    for _ in range(runs):
        (one,) = compare_rules([drawn(rng, 0.3, 0.1, 10 * (1 + more))])
        found += one.change == "worse"
    assert found / runs >= 0.8


def test_more_replicas_are_about_so_many():
    assert more_replicas(PairCounts("r", "", 95, 3, 2, 0, 5), 0.05) in range(100, 100_000, 10)
    assert more_replicas(PairCounts("r", "", 1, 1, 1), 0.05) is None
