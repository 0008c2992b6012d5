"""The error rates of `similarity` on labelled pairs, and that docs/checks.md prints them."""

from pathlib import Path

import pytest
from labelled_answers import labelled_pairs
from text_eval import SCORERS, SETS, errors, pairs, row

from holdfast.likeness.compare import compare

DOCS = Path(__file__).parents[2] / "docs/checks.md"
LIMITS = {
    "long, tuning": (0.12, 0.10),
    "long, held out": (0.12, 0.33),
    "short, tuning": (0.10, 0.36),
    "short, held out": (0.12, 0.20),
}
"""Most that may be judged wrongly: of pairs that differ, and of pairs that say the same."""


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("method", ["lexical", "semantic"])
def test_the_error_rates_stay_below_their_limits(name, method):
    found = errors(name, method)
    assert found.false_same <= LIMITS[name][0]
    assert found.false_different <= LIMITS[name][1]


@pytest.mark.parametrize("name", [name for name in SETS if name.endswith("held out")])
@pytest.mark.parametrize("scorer", SCORERS)
def test_the_docs_print_the_error_rates_of_what_is_held_out(name, scorer):
    assert row(name, scorer) in DOCS.read_text("utf-8")


@pytest.mark.parametrize("name", SETS)
def test_both_ways_round_give_the_same_verdict(name):
    turned = [
        pair_id for pair_id, _, a, b in pairs(name) if (compare(a, b).score >= 0.75) != (compare(b, a).score >= 0.75)
    ]
    assert turned == []


def test_half_of_the_answers_is_held_out_and_both_halves_have_every_language():
    halves = {half: [pair for pair in labelled_pairs() if pair.half == half] for half in ("tuning", "held out")}
    assert len(labelled_pairs()) >= 300
    for found in halves.values():
        assert len(found) >= 0.45 * len(labelled_pairs())
        assert {pair.lang for pair in found} == {"en", "de", "fr", "es", "zh", "ja"}


def test_no_score_is_zero_without_a_named_conflict():
    found = [compare(pair.expected, pair.actual) for pair in labelled_pairs()]
    assert all(bool(likeness.conflicts) == (likeness.score == 0) for likeness in found)
