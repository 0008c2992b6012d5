"""What a database gives becomes what JSON can hold."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.world.services.sql_service import RowCollector, to_json


def test_values() -> None:
    for value, json in [
        (None, None),
        (True, True),
        (7, 7),
        (2**70, str(2**70)),
        (math.inf, "inf"),
        (Decimal("5"), 5),
        (Decimal("1.10"), 1.1),
        (Decimal("0.1000000000000000055511151231257827"), "0.1000000000000000055511151231257827"),
        (Decimal("NaN"), "NaN"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05+00:00"),
        (time(3, 4), "03:04:00"),
        (timedelta(hours=1), "1:00:00"),
        (b"text", "text"),
        (b"\xff\x00", "\\xff00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"a": [Decimal("2.5")]}, {"a": [2.5]}),
    ]:
        assert to_json(value) == json, (value, json)
        assert type(to_json(value)) is type(json), (value, json)


@given(st.one_of(st.decimals(), st.floats(), st.integers(), st.binary(), st.datetimes(), st.text()))
def test_every_value_can_be_written_as_json(value: Any) -> None:
    msgspec.json.encode(to_json(value))


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_never_changes_its_value(value: Decimal) -> None:
    json = to_json(value)
    assert Decimal(repr(json) if isinstance(json, float) else json) == value


def test_rows_beyond_the_limit_are_counted_and_not_kept() -> None:
    kept = RowCollector(2)
    for n in range(5):
        kept.add((n,))
    assert kept.build_rows(["n"]).rows == ((0,), (1,))
    assert kept.build_rows(["n"]).count == 5


def test_wide_rows_are_bounded_by_their_size() -> None:
    kept = RowCollector(100)
    for _ in range(30):
        kept.add(("x" * 1_000_000,))
    assert len(kept.build_rows(["x"]).rows) == 10
