"""`sql`: values as a database gives them, against values as a spec writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from error_code import has_code
from holdfast.checks.state.sql import Sql, is_equal_value
from holdfast.checks.values import is_equal, to_number
from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.verdict import Finding
from world_kit import FakeDatabase, FakeMock, FakeWorld, gathered, rows, run


def judged(answer: Any, **expected: Any) -> Finding:
    check = Sql("db", "SELECT 1", **expected)
    finding: Finding = check.decide(gathered(check, FakeWorld(Path("/nowhere"), FakeDatabase(lambda sql: answer))))
    return finding


@pytest.mark.parametrize(
    ("value", "wanted", "passed"),
    [
        (0, 0, True),
        (1, 1.0, True),
        (1, "1", False),
        ("1", 1, False),
        ("1", "1", True),
        ("a", "A", False),
        ("a ", "a", False),
        (True, True, True),
        (1, True, True),
        (0, False, True),
        (2, True, False),
        (1.0, True, False),
        (True, 1, False),
        ("true", True, False),
        (None, None, True),
        (None, 0, False),
        (0, None, False),
        ("2026-01-01", "2026-01-01", True),
        ("2026-01-01T10:00:00", "2026-01-01T10:00:00", True),
        ({"a": [1, True]}, {"a": [1.0, True]}, True),
        ({"a": 1}, {"a": True}, False),
        ("3.3333333333333333", 3.3333333333333333, True),
        ("18446744073709551616", 18446744073709551616, True),
        ("18446744073709551617", 18446744073709551616, False),
    ],
)
def test_equals(value: Any, wanted: Any, passed: bool) -> None:
    assert judged(rows([value]), equals=wanted).passed is passed


def test_the_first_column_of_the_first_row_counts() -> None:
    assert judged(rows([7, "x"], [8, "y"], columns=("n", "s")), equals=7).passed


def test_no_row_fails_unless_null_is_expected() -> None:
    assert judged(rows(), equals=0).code == "no-row"
    assert judged(rows(), equals=None).passed is True
    assert judged(rows(), at_most=3).passed is False
    assert judged(rows(), one_of=(None,)).passed is False


@pytest.mark.parametrize(
    ("expected", "value", "passed"),
    [
        ({"at_least": 3}, 3, True),
        ({"at_least": 3}, 2.9, False),
        ({"at_most": 3}, 3, True),
        ({"at_most": 3}, 4, False),
        ({"at_least": 1, "at_most": 3}, 2, True),
        ({"at_least": 3}, "3.3333333333333333", True),
        ({"at_least": 0}, "many", False),
        ({"at_least": 0}, None, False),
        ({"at_least": 0}, True, False),
        ({"matches": "^a.c$"}, "abc", True),
        ({"matches": "^a.c$"}, "xabc", False),
        ({"matches": "^4"}, 42, True),
        ({"matches": "null"}, None, False),
        ({"one_of": ("open", "closed")}, "open", True),
        ({"one_of": (1, 2)}, "1", False),
        ({"equals": 5, "at_most": 4}, 5, False),
    ],
)
def test_other_operators(expected: dict[str, Any], value: Any, passed: bool) -> None:
    assert judged(rows([value]), **expected).passed is passed


def test_rows_counts_all_of_them_also_those_that_are_not_kept() -> None:
    assert judged(rows([1], count=250), rows=250).passed
    assert judged(rows([1], [2]), rows=1).code == "rows-above"
    assert judged(rows(), rows=0).passed
    assert judged(rows([4], [5]), rows=2, equals=4).passed


def test_what_the_database_refuses_after_the_agent_is_a_fail_and_before_it_an_error() -> None:
    refused = QueryFailed('relation "customers" does not exist', state="42P01")
    found = judged(refused, equals=0)
    assert (found.passed, found.code) == (False, "query-refused")
    check = Sql("db", "SELECT 1", equals=0)
    with pytest.raises(QueryFailed):
        run(check.foresee(FakeWorld(Path("/nowhere"), FakeDatabase(lambda sql: refused))))
    run(check.foresee(FakeWorld(Path("/nowhere"), FakeDatabase(lambda sql: rows([1])))))


def test_a_query_that_hangs_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(HarnessError, check=has_code("check-timeout")):
        judged(TimeoutError(), equals=0)


def test_a_service_that_is_not_a_database_is_an_error() -> None:
    with pytest.raises(HarnessError, check=has_code("check-service-wrong")):
        run(Sql("db", "SELECT 1", equals=0).foresee(FakeWorld(Path("/nowhere"), FakeMock(name="db"))))


def test_problems() -> None:
    assert [field for field, _ in Sql("db", "q").problems()] == [""]
    assert [field for field, _ in Sql("db", "q", matches="(").problems()] == ["matches"]
    assert not list(Sql("db", "q", equals=None).problems())
    assert not list(Sql("db", "q", rows=0).problems())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON)
def test_sameness_is_reflexive_symmetric_and_never_mixes_kinds(a: Any, b: Any) -> None:
    assert is_equal(a, a)
    assert is_equal(a, b) == is_equal(b, a)
    if is_equal(a, b):
        assert (type(a) is bool) == (type(b) is bool)
        assert isinstance(a, str) == isinstance(b, str)


@given(st.integers(-(2**70), 2**70))
def test_large_numbers_that_come_as_text_are_numbers_still(number: int) -> None:
    assert is_equal_value(str(number), number) is (sum(map(str.isdigit, str(number))) > 15)
    assert to_number(str(number)) == float(number)
