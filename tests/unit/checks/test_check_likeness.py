from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from likeness_pairs import FITTED, HELD_OUT, SAME_KINDS

from holdfast.checks.likeness import likeness

METHODS = ("lexical", "semantic")
PAIRS = FITTED + HELD_OUT


@pytest.mark.parametrize("method", METHODS)
def test_pairs_that_differ_do_not_pass_and_most_paraphrases_do(method):
    passed = {True: [], False: []}
    for kind, a, b in PAIRS:
        passed[kind in SAME_KINDS].append(likeness(a, b, method).score >= 0.75)
    assert sum(passed[False]) == 0
    assert sum(passed[True]) / len(passed[True]) >= 0.75


@pytest.mark.parametrize("method", METHODS)
def test_the_score_is_the_same_both_ways_round(method):
    for _, a, b in PAIRS:
        assert likeness(a, b, method).score == likeness(b, a, method).score


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
        ("It costs 4.2 million.", "It costs 5.7 million.", "4.2 million became 5.7 million"),
        ("It costs 12 euros.", "It costs many euros.", "12 euros is missing"),
        ("The dose is 5 g.", "The dose is 5 mg.", "5 g became 5 mg"),
        ("It is due on 04/05/2024.", "It is due on 05/04/2024.", "04/05/2024 became 05/04/2024"),
        ("The capital is Paris.", "The capital is Lyon.", "Paris became Lyon"),
        ("Alice paid Bob.", "Bob paid Alice.", "'Alice' and 'Bob' changed places"),
        ("Refunds are accepted.", "Refunds are not accepted.", "now says a negation ('not')"),
        ("It was not sent.", "It was sent.", "no longer says a negation ('not')"),
        ("It was approved.", "It may be approved.", "now says that it is uncertain ('may')"),
        ("Some files are lost.", "All files are lost.", "now says all ('All')"),
        ("The door is open.", "The door is closed.", "'open' became 'closed'"),
        ("It was sent.", "It will be sent.", "what is done is now to come"),
        ("It is sent.", "Is it sent?", "a statement became a question"),
        ("First wash, then dry.", "First dry, then wash.", "the steps are in another order"),
        ("It works.", "It works. Your password is hunter2.", "added: 'password hunter2'"),
        ("It works. Mind the dog outside.", "It works.", "missing: 'Mind dog outside'"),
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
    text = "word and more " * 10_000
    assert likeness(text, text + "end", "lexical").score > 0.75


def test_two_long_answers_are_compared_in_seconds() -> None:
    def words(base: int) -> str:
        names = ("".join(chr(97 + (base + n) * k % 26) for k in (1, 3, 7, 11, 17)) + f"x{n}" for n in range(20_000))
        return " ".join(f"{'not ' if n % 3 else ''}{w.title() if n % 2 else w}" for n, w in enumerate(names))

    one = words(0)
    started = process_time()
    for this, other in ((one, words(5)), ("It costs Paul 5 euros.", one)):
        likeness(this, other, "lexical")
    assert process_time() - started < 8


def test_one_sentence_said_over_and_over_is_compared_in_seconds() -> None:
    text = "Your order 5 ships on Monday and Bob pays. " * 2_000
    started = process_time()
    assert likeness(text, text + "Then the dog barks loudly.", "lexical").score < 0.75
    assert process_time() - started < 4
