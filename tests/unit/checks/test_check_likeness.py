from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from likeness_pairs import FITTED, HELD_OUT, SAME_KINDS

from holdfast.checks.likeness import likeness

# Measured. The pairs and the measure have one author, so answers in the wild will score lower.
ACHIEVED = {
    ("lexical", "fitted"): 0.97,
    ("semantic", "fitted"): 0.97,
    ("lexical", "held out"): 0.96,
    ("semantic", "held out"): 0.96,
}
SETS = {"fitted": FITTED, "held out": HELD_OUT}


@pytest.mark.parametrize("threshold", [0.75, 0.8])
@pytest.mark.parametrize(("method", "pairs"), ACHIEVED)
def test_documented_thresholds_mean_the_same_answer(method, pairs, threshold):
    right = [(likeness(a, b, method).score >= threshold) == (kind in SAME_KINDS) for kind, a, b in SETS[pairs]]
    assert sum(right) / len(right) >= ACHIEVED[method, pairs]


@pytest.mark.parametrize("method", ["lexical", "semantic"])
@pytest.mark.parametrize("kind", ["number", "negated", "entity"])
def test_guard_sees_every_changed_number_negation_and_name(kind, method):
    missed = [(a, b) for k, a, b in FITTED + HELD_OUT if k == kind and likeness(a, b, method).score >= 0.75]
    assert not missed


def test_there_are_enough_pairs_of_every_kind():
    assert len(FITTED) >= 40
    kinds = {"same", "paraphrase", "contradiction", "number", "negated", "entity", "unrelated", "truncated"}
    for pairs in (FITTED, HELD_OUT):
        assert {kind for kind, _, _ in pairs} == kinds


@pytest.mark.parametrize(
    ("expected", "answer", "conflict"),
    [
        ("It costs 4.2 million.", "It costs 5.7 million.", "number 4200000 became 5700000"),
        ("It costs 12 euros.", "It costs some euros.", "number 12 is missing"),
        ("The capital is Paris.", "The capital is Lyon.", "name Paris became Lyon"),
        ("Refunds are accepted.", "Refunds are not accepted.", "'accepted' is now denied"),
        ("It was not sent.", "It was sent.", "'sent' is no longer denied"),
        ("Yes.", "No.", "yes became no"),
        ("The door is open.", "The door is closed.", "'open' became 'closed'"),
    ],
)
def test_conflicts_are_named(expected, answer, conflict):
    assert conflict in likeness(expected, answer, "lexical").conflicts


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("It costs $4.2M.", "It costs 4.2 million dollars."),
        ("It costs 1,000.", "It costs 1000."),
        ("Three people came.", "3 people came."),
        ("You do not need a receipt.", "No receipt is needed."),
        ("It can't be done.", "It cannot be done."),
        ("It is not available.", "It isn't available."),
        ("1. Open it\n2. Close it", "- Open it\n- Close it"),
    ],
)
def test_other_spellings_are_no_conflict(expected, answer):
    assert not likeness(expected, answer, "lexical").conflicts


@given(st.text())
def test_a_text_is_like_itself(text):
    assert likeness(text, text, "lexical").score == 1.0


@given(st.text(), st.text())
def test_likeness_stays_between_0_and_1(one, other):
    assert 0.0 <= likeness(one, other, "lexical").score <= 1.0


def test_very_long_texts_are_compared():
    text = "word and more " * 40_000
    assert likeness(text, text + "end", "lexical").score > 0.75


def test_two_answers_of_a_megabyte_are_compared_in_seconds() -> None:
    def words(base: int) -> str:
        names = ("".join(chr(97 + (base + n) * k % 26) for k in (1, 3, 7, 11, 17)) + f"x{n}" for n in range(60_000))
        return " ".join(f"{'not ' if n % 3 else ''}{w.title() if n % 2 else w}" for n, w in enumerate(names))

    one = words(0)
    started = process_time()
    for this, other in ((one, words(5)), ("It costs Paul 5 euros.", one), (one, "It costs Paul 5.")):
        likeness(this, other, "lexical")
    assert process_time() - started < 20
