from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.spec import Aggregation
from holdfast.score.cell import count_needed, decide_prompt

HOWS = [
    Aggregation("all"),
    Aggregation("any"),
    Aggregation("majority"),
    Aggregation("at_least", 2),
    Aggregation("rate", 0.8),
    Aggregation("rate", 0.5),
]


@pytest.mark.parametrize(
    ("how", "n", "need"),
    [
        (Aggregation("all"), 5, 5),
        (Aggregation("any"), 5, 1),
        (Aggregation("majority"), 4, 3),
        (Aggregation("majority"), 5, 3),
        (Aggregation("majority"), 1, 1),
        (Aggregation("at_least", 3), 5, 3),
        (Aggregation("at_least", 3), 1, 1),
        (Aggregation("rate", 0.8), 5, 4),
        (Aggregation("rate", 0.8), 4, 4),
        (Aggregation("rate", 0.7), 10, 7),
        (Aggregation("rate", 0.0), 3, 0),
    ],
)
def test_how_many_replicas_must_pass(how, n, need):
    assert count_needed(how, n) == need


def test_mean_is_for_composites_only():
    with pytest.raises(ValueError, match="composites"):
        count_needed(Aggregation("mean"), 3)


@pytest.mark.parametrize(
    ("how", "outcomes", "settled"),
    [
        ("all", "ppp", "pass"),
        ("all", "pfe", "fail"),
        ("all", "ppe", "error"),
        ("all", "ppu", "unproven"),
        ("all", "peu", "error"),
        ("any", "peu", "pass"),
        ("any", "ffu", "unproven"),
        ("any", "fff", "fail"),
        ("majority", "ppe", "pass"),
        ("majority", "ffe", "fail"),
        ("majority", "pfe", "error"),
    ],
)
def test_a_combination_is_decided_only_if_the_undecided_cannot_change_it(how, outcomes, settled):
    n = len(outcomes)
    p, f, e = (outcomes.count(c) for c in "pfe")
    assert decide_prompt(p, f, e, n, count_needed(Aggregation(how), n)) == settled


@settings(deadline=None)
@given(st.sampled_from(HOWS), st.text("pfeu", min_size=2, max_size=6))
def test_three_valued_logic_agrees_with_trying_every_completion(how, outcomes):
    n = len(outcomes)
    need = count_needed(how, n)
    choices = [{"p": (1,), "f": (0,)}.get(c, (0, 1)) for c in outcomes]
    results = {sum(bits) >= need for bits in product(*choices)}
    p, f, e = (outcomes.count(c) for c in "pfe")
    expected = ("error" if e else "unproven") if len(results) == 2 else ("pass" if results == {True} else "fail")
    assert decide_prompt(p, f, e, n, need) == expected
