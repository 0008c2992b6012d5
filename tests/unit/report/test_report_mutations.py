"""Mutations in words."""

from __future__ import annotations

import re

import pytest

from golden_words import Golden
from holdfast.model.score import Interval, MutationScore, Score, Share, TypeShare
from holdfast.report.mutations import format_headline, format_judged, format_robustness, format_share, format_table

TYPES = (TypeShare("noise", False, 0.8, 3, 4, 1), TypeShare("prompt_injection", True, 1.5, 2, 2))
MADE = MutationScore(0.8333, Share(3, 4, 0.75, Interval(0.3, 0.954)), Share(2, 2), TYPES)


def test_the_headline_has_the_three_numbers_and_leaves_out_what_was_not_judged(golden: Golden) -> None:
    score = Score(83.33, True, 0, Interval(51.2, 95.9, "bootstrap", 30), mutation=MADE)
    golden(format_headline(score))
    undecided = MutationScore(None, Share(0, 0), Share(0, 0))
    assert format_headline(Score(None, False, 5, mutation=undecided)) == "robustness –"
    assert format_headline(Score(None, False, 5)) == ""
    assert (format_robustness(undecided), format_share(Share(1, 2))) == ("–", "1 of 2")


def test_probes_are_distinguished_from_mutations(golden: Golden) -> None:
    golden(
        [format_judged(Score(83.33, True, 0, mutation=MADE, judged=n, total=total)) for n, total in ((6, 7), (7, 9))]
    )


def test_the_table_is_aligned(golden: Golden) -> None:
    golden(list(format_table(MADE)))


@pytest.mark.parametrize(("low", "high"), [(0.0, 100.0), (12.3, 15.1), (83.2, 83.4), (99.0, 100.0), (0.0, 0.4)])
def test_the_interval_of_a_robustness_is_in_its_scale(low: float, high: float) -> None:
    score = Score((low + high) / 2, True, 0, Interval(low, high, "bootstrap", 30), mutation=MADE)
    found = re.search(r"robustness \S+ +\(95 %: ([0-9.]+)–([0-9.]+)\)", format_headline(score))
    assert found is not None
    assert [float(end) for end in found.groups()] == [round(low / 100, 2), round(high / 100, 2)]
