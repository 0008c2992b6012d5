from __future__ import annotations

import re
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.likeness.compare import compare


def codes(expected: str, actual: str) -> set[str]:
    return {conflict.code for conflict in compare(expected, actual).conflicts}


CONFLICTS = [
    ("number", "Take 5 g of it daily.", "Take 5 mg of it daily."),
    ("number", "It costs $1,000.", "It costs $100."),
    ("number", "It costs 40 euros.", "It costs 40 dollars."),
    ("date", "The invoice is due on 5 April 2024.", "The invoice is due on 2024-04-06."),
    ("clock", "The train leaves at 14:30.", "The train leaves at 15:30."),
    ("code", "Run `make test-fast_1` first.", "Run `make test-fast_2` first."),
    ("name", "The capital of France is Paris.", "The capital of France is Lyon."),
    ("exchanged", "Starter costs $12 and Team costs $49.", "Starter costs $49 and Team costs $12."),
    ("exchanged", "Alice paid Bob 300 dollars.", "Bob paid Alice 300 dollars."),
    ("exchanged", "Lower the pool from 50 to 5.", "Lower the pool from 5 to 50."),
    ("exchanged", "Invoice 12 is paid, invoice 13 is open.", "Invoice 12 is open, invoice 13 is paid."),
    ("bound", "Use at least 12 characters.", "Use at most 12 characters."),
    ("negation", "You can return opened items.", "You cannot return opened items."),
    ("negation", "Das Gerät muss zurück.", "Das Gerät muss nicht zurück."),
    ("negation", "朝食は含まれています。", "朝食は含まれていません。"),
    ("opposite", "The audit log is enabled by default.", "The audit log is disabled by default."),
    ("certainty", "Card refunds may take ten days.", "Card refunds will take ten days."),
    ("obligation", "You must tell your manager early.", "You should tell your manager early."),
    ("quantity", "All branches close early on Monday.", "Some branches close early on Monday."),
    ("tense", "The money has been sent to Berlin.", "The money will be sent to Berlin."),
    ("question", "Your passport is ready.", "Is your passport ready?"),
    ("condition", "We refund shipping unless the item was worn.", "We refund shipping."),
    ("order", "1. Back up the server.\n2. Install the update.", "1. Install the update.\n2. Back up the server."),
    ("word", "The soup contains celery.", "The soup contains peanuts."),
    ("added", "It works.", "It works. Your password is hunter."),
    ("missing", "It works. Mind the barking dog.", "It works."),
]


@pytest.mark.parametrize(("code", "expected", "actual"), CONFLICTS)
def test_a_conflict_is_named_by_its_code(code, expected, actual):
    assert code in codes(expected, actual)
    assert compare(expected, actual).score == 0


SAME = [
    ("It costs 1.249,00 € und kommt morgen.", "Es kommt morgen und kostet 1249 EUR."),
    ("The invoice was paid on March 3, 2024.", "The invoice was paid on 3 March 2024."),
    ("It takes 1500 ms.", "It takes 1.5 s."),
    ("You do not need a receipt.", "No receipt is needed."),
    ("It can't be done.", "It cannot be done."),
    ("1. Open it\n2. Close it", "1) Open it\n2) Close it"),
    ("The capital of France is Paris.", "Paris is the capital of France."),
    ("Joining is free in January.", "There is no joining fee in January."),
    ("We do not cover the washing machine.", "**Not covered:** the washing machine"),
    ("The pool opens at 7 am.", "Good morning! The pool opens at 7 am. I hope this helps."),
    ("| Plan | Price |\n|---|---|\n| A | $5 |\n| B | $9 |", "| Price | Plan |\n|---|---|\n| $9 | B |\n| $5 | A |"),
    ("| Plan | Price |\n|---|---|\n| Gold | $5 |\n| Blue | $9 |", "- Gold: price $5\n- Blue: price $9"),
    ("売上は4億8,200万円です。", "売上は482,000,000円です。"),
    ("The meeting is for Dana, Luis and Mei.", "The meeting is for Mei, Luis and Dana."),
    ("年假应提前两周申请。", "年假应提前14天申请。"),
]


@pytest.mark.parametrize(("expected", "actual"), SAME)
def test_other_ways_to_say_the_same_are_the_same(expected, actual):
    assert compare(expected, actual).score >= 0.75, compare(expected, actual).conflicts


@pytest.mark.parametrize(
    ("expected", "actual", "alike"),
    [
        ('{"a": 1, "b": [true, null]}', '```json\n{"b": [true, null], "a": 1.0}\n```', True),
        ('{"a": null}', '{"a": 0}', False),
        ('{"a": true}', '{"a": 1}', False),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": [1]}', '{"a": [1, 1]}', False),
        ('{"a": 1}', '{"a": 1, "b": 2}', False),
        ('{"note": "Please pay within 30 days."}', '{"note": "Pay within 30 days, please."}', True),
        ('{"note": "Please pay within 30 days."}', '{"note": "Please pay within 60 days."}', False),
        ("```yaml\na: 1\nb: x\n```", "```yaml\nb: x\na: 1\n```", True),
        ("```yaml\na: on\n```", "```yaml\na: off\n```", False),
        ("```sql\nSELECT a\nFROM b;\n```", "```sql\nSELECT a FROM b\n```", True),
        ("```py\nwhile ok: pass\n```", "```py\nwhile not ok: pass\n```", False),
        ("| Plan | SSO |\n|---|---|\n| A | yes |", "| Plan | SSO |\n|---|---|\n| A | no |", False),
    ],
)
def test_data_code_and_tables_are_compared_as_what_they_are(expected, actual, alike):
    assert (compare(expected, actual).score >= 0.75) is alike


@pytest.mark.parametrize(
    "twice",
    [
        '{"paid": false, "paid": true}',
        '[{"paid": false, "paid": true}]',
        '```yaml\n{"paid": false, "paid": true}\n```',
        "```yaml\n- paid: false\n  paid: true\n```",
    ],
)
def test_data_with_a_duplicate_key_is_not_like_the_last_of_its_values(twice):
    once = re.sub(r'"?paid"?: false,?\s*', "", twice)
    assert compare(once, twice).score < 0.75
    assert compare(twice, twice).score == 1


LAUGHS = "".join(f"{one}: &{one} [{', '.join([f'*{before}'] * 9)}]\n" for before, one in pairwise("abcdefgh"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", ["day: 2024-13-45", "[" * 5_000 + "]" * 5_000, f"n: {'9' * 5_000}", f"a: &a [x, y]\n{LAUGHS}", "a: &a [*a]"]
)
def test_yaml_that_no_reader_should_expand_is_compared_as_text(code):
    fenced = f"```yaml\n{code}\n```"
    assert compare(fenced, fenced).score == 1
    assert compare("The day is Monday.", fenced).score < 0.75


def test_an_empty_text_is_like_nothing_else():
    assert compare("", "The order ships today.").score == 0
    assert compare("Yes, it is.", "No, it is not.").score == 0


@given(st.text())
def test_a_text_is_like_itself(text):
    assert compare(text, text).score == 1.0


@given(st.text(), st.text())
def test_the_score_is_between_0_and_1_and_0_only_with_a_conflict(one, other):
    found = compare(one, other)
    assert 0.0 <= found.score <= 1.0
    assert (found.score == 0) is bool(found.conflicts)


@pytest.mark.slow
def test_long_texts_are_compared_in_seconds():
    def words(base: int) -> str:
        names = ("".join(chr(97 + (base + n) * k % 26) for k in (1, 3, 7, 11, 17)) + f"x{n}" for n in range(20_000))
        return " ".join(f"{'not ' if n % 3 else ''}{w.title() if n % 2 else w}" for n, w in enumerate(names))

    repeated = "Your order 5 ships on Monday and Bob pays. " * 2_000
    one = words(0)
    started = process_time()
    for this, other in (
        (one, words(5)),
        ("It costs 5 euros.", one),
        (repeated, f"{repeated} Then the dog barks loudly."),
    ):
        assert compare(this, other).score < 0.75
    assert process_time() - started < 12


# Answers that are nothing but one word, or one heading: opposites are not the same.


OPPOSITES = [
    ("Approved", "Denied"), ("True", "False"), ("Pass", "Fail"), ("Buy now.", "Sell now."), ("Open", "Closed"),
    ("enabled", "disabled"), ("**Approved**", "**Denied**"), ("# Approved", "# Denied"), ("Red", "Blue"),
    ('{"ok":"Approved"}', '{"ok":"Denied"}'),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), OPPOSITES)
def test_opposites_without_anything_around_them_are_not_alike(one: str, other: str) -> None:
    assert compare(one, other, "lexical").score == 0.0
    assert compare(one, one, "lexical").score == 1.0
