"""The floors of `similarity` on every half of the labelled set that is there."""

import pytest
from text_eval import halves, pairs, passes, rate

METHODS = ["lexical", "semantic"]
PARAPHRASES = 0.80
"""Of every half, also of the one that nobody looked at while the check was mended. See docs/checks.md."""


@pytest.mark.parametrize("half", halves())
@pytest.mark.parametrize("method", METHODS)
def test_answers_that_differ_rarely_pass_and_paraphrases_mostly_do(half, method):
    assert rate(half, method, same=False) <= 0.05
    assert rate(half, method, same=True) >= PARAPHRASES


@pytest.mark.parametrize("half", halves())
@pytest.mark.parametrize("method", METHODS)
def test_both_ways_round_give_the_same_verdict(half, method):
    turned = [pair["id"] for pair in pairs(half) if len(set(passes(pair, method))) > 1]
    assert not turned
