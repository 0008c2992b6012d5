from decimal import Decimal
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from holdfast.faults.tools.wrong_value import CHANGES, change_digits, transpose_digits

seeds = st.integers(0, 2**32).map(Random)


@given(st.integers(-(10**18), 10**18), seeds)
def test_a_whole_number_becomes_another_one_of_as_many_digits(number, rng):
    lie = change_digits(number, rng)
    assert type(lie) is int
    assert lie != number
    assert len(str(lie)) == len(str(number))


@given(st.floats(allow_nan=False, allow_infinity=False), seeds)
def test_a_float_becomes_another_float(number, rng):
    lie = change_digits(number, rng)
    assert type(lie) is float
    assert lie != number


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9), seeds)
def test_a_decimal_becomes_another_decimal(number, rng):
    lie = change_digits(number, rng)
    assert type(lie) is Decimal
    assert lie != number


def test_neighbouring_digits_change_places():
    assert {transpose_digits("189.30", Random(seed)) for seed in range(50)} == {"819.30", "198.30", "183.90", "189.03"}


def test_a_number_without_neighbours_to_exchange_gets_another_digit():
    assert transpose_digits("500", Random(0)) != "500"
    assert transpose_digits("7", Random(0)) in "12345689"


def test_data_without_values_to_change_stays_the_same_object():
    for data in [{}, [], None, True, "no numbers", {"a": True}, [[]], float("nan"), "2024-01-15 10:30"]:
        for kind in CHANGES:
            assert CHANGES[kind](data, Random(0)) is data, (data, kind)


json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(json_data, st.sampled_from(list(CHANGES)), seeds)
def test_a_lie_keeps_the_kind_and_really_differs(data, kind, rng):
    lie = CHANGES[kind](data, rng)
    assert type(lie) is type(data)
    assert lie is data or lie != data
