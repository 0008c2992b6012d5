from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.score.comparison import (
    ALPHA,
    PairCounts,
    PromptPairs,
    adjust_by_holm,
    compare_rules,
    compute_mcnemar,
    estimate_prompts,
)


def counts(rule: str, *, both: int = 0, lost: int = 0, gained: int = 0, **more: Any) -> PairCounts:
    """Each pair is of a prompt of its own."""
    prompts = [PromptPairs(both=1)] * both + [PromptPairs(lost=1)] * lost + [PromptPairs(gained=1)] * gained
    return PairCounts(rule, prompts=prompts, **more)


def test_mcnemar_gives_known_values():
    assert compute_mcnemar([]) == 1.0
    assert compute_mcnemar([1, -1] * 5) == 1.0
    assert compute_mcnemar([1] * 6) == pytest.approx(0.03125)
    assert compute_mcnemar([1] * 10 + [-1] * 2) == pytest.approx(0.03857, abs=1e-5)
    assert compute_mcnemar([-1] * 10 + [1] * 2) == compute_mcnemar([1] * 10 + [-1] * 2)


def test_scenarios_that_lose_one_prompt_together_are_one_coin():
    assert compute_mcnemar([3] * 6) == compute_mcnemar([1] * 6)
    assert compute_mcnemar([7, 0, 0]) == 1.0
    assert compute_mcnemar([2, 1, 1]) == pytest.approx(2 / 8)


@given(st.lists(st.integers(-4, 4), max_size=9))
def test_mcnemar_counts_every_way_of_tossing_the_coins(changes):
    known = [change for change in changes if change]
    tosses = [sum(s * c for s, c in zip(signs, known, strict=True)) for signs in product((1, -1), repeat=len(known))]
    assert compute_mcnemar(changes) == pytest.approx(sum(abs(t) >= abs(sum(known)) for t in tosses) / len(tosses))


def test_holm_gives_known_values():
    assert adjust_by_holm([0.01, 0.04, 0.03]) == [pytest.approx(0.03), pytest.approx(0.06), pytest.approx(0.06)]
    assert adjust_by_holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_p_nor_changes_their_order(ps):
    adjusted = adjust_by_holm(ps)
    assert all(p <= q <= 1.0 for p, q in zip(ps, adjusted, strict=True))
    for (p, a), (q, b) in zip(zip(ps, adjusted, strict=True), zip(ps[1:], adjusted[1:], strict=True), strict=False):
        assert p == q or (p < q) <= (a <= b)


def test_one_attack_that_is_newly_obeyed_is_worse_whatever_p_says():
    (found,) = compare_rules([counts("attacks resisted", both=20, lost=1, gained=5, obeyed=("noise of 'x'",))])
    assert (found.change, found.more_prompts, found.obeyed) == ("worse", None, ("noise of 'x'",))


def test_each_rule_gets_its_word():
    found = compare_rules(
        [
            counts("worse", lost=12, both=8),
            counts("better", gained=12),
            counts("same", both=20),
            counts("open", both=17, lost=3),
            counts("even", both=16, lost=2, gained=2),
            counts("nothing"),
        ]
    )
    assert [(one.rule, one.change) for one in found] == [
        ("worse", "worse"), ("better", "better"), ("same", "same"), ("open", "cannot tell"), ("even", "cannot tell"),
    ]  # fmt: skip
    assert (found[0].passed_before, found[0].passed_after) == (20, 8)
    assert found[0].more_prompts is None
    assert found[3].more_prompts is not None
    assert found[4].more_prompts is None


@pytest.mark.parametrize(
    ("lost", "gained", "change"), [(1, 0, "worse"), (1, 5, "worse"), (0, 1, "better"), (0, 0, "same")]
)
def test_an_exact_comparison_needs_one_prompt_and_takes_no_part_in_holms_correction(lost, gained, change):
    exact = counts("exact", both=3, lost=lost, gained=gained, exact=True)
    found = compare_rules([exact, counts("sampled", lost=6)])
    assert (found[0].change, found[0].p, found[0].p_holm, found[0].more_prompts) == (change, None, None, None)
    assert (found[1].change, found[1].p_holm) == ("worse", found[1].p)


def drawn(rng: Random, lost: float, gained: float, pairs: int) -> PairCounts:
    found = [0, 0, 0]
    for _ in range(pairs):
        luck = rng.random()
        found[0 if luck < lost else 1 if luck < lost + gained else 2] += 1
    return counts("r", both=found[2], lost=found[0], gained=found[1])


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
def test_rules_that_did_not_change_are_rarely_called_worse_or_better(rate):
    rng, runs = Random(3), 600
    wrong = 0
    for _ in range(runs):
        found = compare_rules([drawn(rng, rate / 2, rate / 2, 40) for _ in range(5)])
        wrong += any(one.change in ("worse", "better") for one in found)
    assert wrong / runs <= ALPHA + 0.02


def test_so_many_more_prompts_do_find_the_difference():
    rng, found, runs = Random(5), 0, 300
    more = estimate_prompts(counts("r", both=6, lost=3, gained=1), ALPHA)
    assert more is not None
    for _ in range(runs):
        (one,) = compare_rules([drawn(rng, 0.3, 0.1, 10 + more)])
        found += one.change == "worse"
    assert found / runs >= 0.8


def test_more_prompts_are_about_so_many():
    assert estimate_prompts(counts("r", both=95, lost=3, gained=2), 0.05) in range(1000, 100_000, 100)
    assert estimate_prompts(counts("r", both=1, lost=1, gained=1), 0.05) is None
