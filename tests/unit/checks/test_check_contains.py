import pytest
from check_exhibits import exhibit
from hypothesis import given
from hypothesis import strategies as st

from holdfast.checks.patterns import find_folded
from holdfast.checks.response.contains import Contains


def test_contains_ignores_case_and_marks_the_place():
    finding = Contains("ACCORDING to").decide(exhibit("Up 5 %, according to the filing."))
    assert finding.passed
    assert finding.marks == ((8, 20),)


def test_contains_fails_with_the_missing_text_in_the_reason():
    finding = Contains("source").decide(exhibit("Revenue was up."))
    assert finding.passed is False
    assert finding.code == "text-missing"


def test_empty_value_is_a_problem():
    assert [field for field, _ in Contains("").problems()] == ["value"]
    assert not list(Contains("x").problems())


@pytest.mark.parametrize(
    ("text", "value", "place"), [("Die STRASSE", "straße", (4, 11)), ("Maße: ja", "JA", (6, 8)), ("ßx", "x", (1, 2))]
)
def test_letters_that_fold_to_two_keep_their_place(text, value, place):
    assert find_folded(text, value) == place


@given(st.text(), st.text(min_size=1), st.text())
def test_whatever_is_in_the_text_is_found(before, value, after):
    span = find_folded(before + value + after, value)
    assert span is not None
    start, end = span
    assert 0 <= start <= end <= len(before + value + after)
    assert value.casefold() in (before + value + after)[start:end].casefold()


def test_long_values_are_cut_in_the_middle_of_the_reason():
    finding = Contains("x" * 500).decide(exhibit("no"))
    assert len(finding.reason) < 200
    assert " … " in finding.reason
