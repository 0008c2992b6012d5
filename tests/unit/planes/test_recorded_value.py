"""Values of tools as JSON: what is read is what was written, in kind and in value, or it is lost with the reason."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import uuid
import zoneinfo
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from holdfast.errors import HarnessError
from holdfast.planes.recorded_value import REPLY_KEPT, has_python, read_lost, read_reply, write_lost, write_reply


class Kind(enum.Enum):
    PAID = 1


class Level(enum.IntEnum):
    LOW = 1


class Word(str):
    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class Order:
    kind: Kind
    due: datetime.date


@dataclasses.dataclass(slots=True)
class Slotted:
    items: list[int]


class Checked(BaseModel):
    paid: decimal.Decimal


class Plain:
    def __init__(self, n: int) -> None:
        self.n = n


Pair = collections.namedtuple("Pair", "a b")


class Declined(Exception):
    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(f"declined: {reason}")
        self.code = code


class Local(OSError):
    """An exception whose built-in part has fields of its own."""


VALUES: list[Any] = [
    None, True, 7, -(2**63), 2**64, 1.5, -0.0, math.inf, 1j, "text", "[1]", "", b"\xff", bytearray(b"a"), (), (1, (2,)),
    {1, 2}, frozenset("ab"), {1: "a", (2, 3): "b"}, {"$python": 1}, {"z": 1, "a": [None]}, {None: 0},
    datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, 4, 5, 6), datetime.datetime(2026, 1, 2, tzinfo=UTC),
    datetime.time(1, 2), datetime.timedelta(-1, 2, 3), decimal.Decimal("1.10"), uuid.UUID(int=7),
    fractions.Fraction(1, 3), pathlib.PurePosixPath("/a/b"), Kind.PAID, Level.LOW, Word("w"),
    Order(Kind.PAID, datetime.date(2026, 1, 2)),
    Slotted([1]), Checked(paid=decimal.Decimal("4.0")), Pair(1, b"2"), collections.OrderedDict(b=1, a=2),
]  # fmt: skip


@pytest.mark.parametrize("n", range(len(VALUES)), ids=lambda n: f"{n}-{type(VALUES[n]).__name__}")
def test_a_written_value_reads_back_equal(n: int) -> None:
    value = VALUES[n]
    text = write_reply(value)
    assert read_lost(text) is None
    again = read_reply(text)
    assert (type(again), write_reply(again)) == (type(value), text)
    assert again == value
    assert not isinstance(value, dict) or list(again) == list(value)


def test_objects_that_compare_by_identity_hold_the_same() -> None:
    first, second = read_reply(write_reply([Plain(1), {"in": Plain(2)}]))
    assert (type(first), first.n, second["in"].n) == (Plain, 1, 2)


def test_no_number_is_another_one() -> None:
    assert math.isnan(read_reply(write_reply(math.nan)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.just("$python"), inner)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(JSON)
def test_any_nest_of_them_comes_back(value: Any) -> None:
    text = write_reply(value)
    assert read_lost(text) is None
    assert repr(read_reply(text)) == repr(value)


@pytest.mark.parametrize("value", [{"a": [1, "b", None]}, "{$python}", '{"$python":"object"}', 7])
def test_json_values_are_written_as_plain_json(value: Any) -> None:
    assert not has_python(write_reply(value))


RAISED: list[BaseException] = [
    Declined(7, reason="funds"), ValueError("no"), ValueError(), KeyError("a", (1,)), FileNotFoundError(2, "no", "f"),
    Local(2, "gone", "f"),
    UnicodeDecodeError("utf-8", b"a", 0, 1, "bad"), ImportError("no", name="m"), ExceptionGroup("two", [ValueError(1)]),
    StopIteration(3), TimeoutError("late"),
]  # fmt: skip


@pytest.mark.parametrize("raised", RAISED, ids=repr)
def test_an_exception_comes_back_without_its_init(raised: BaseException) -> None:
    raised.add_note("which is kept among its fields")
    again = read_reply(write_reply(raised))
    assert (type(again), str(again), repr(again.args)) == (type(raised), str(raised), repr(raised.args))
    assert vars(again) == vars(raised)
    assert getattr(again, "errno", None) == getattr(raised, "errno", None)


def local_value() -> Any:
    class Inner(Exception):
        pass

    return Inner()


LOST: list[tuple[Any, str, str]] = [
    (local_value(), "no-json", "Inner"),
    (lambda: 1, "no-json", "function"),
    ((n for n in ()), "no-json", "generator"),
    ([{"deep": object}], "no-json", "type"),
    ("\ud800", "no-json", "str"),
    (datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")), "no-json", "datetime"),
    (collections.deque([1]), "no-json", "deque"),
    ("x" * REPLY_KEPT, "too-long", ""),
]


@pytest.mark.parametrize(("value", "code", "kind"), LOST, ids=[kind or code for _, code, kind in LOST])
def test_a_value_that_cannot_be_recreated_is_lost_with_the_reason(value: Any, code: str, kind: str) -> None:
    lost = read_lost(write_reply(value))
    assert lost is not None
    assert lost.code == code
    assert lost.kind.endswith(kind)


def test_a_value_that_holds_itself_is_too_deep() -> None:
    value: list[Any] = []
    value.append(value)
    lost = read_lost(write_reply(value))
    assert lost is not None
    assert lost.code == "too-deep"


@pytest.mark.parametrize(
    "text",
    [
        '{"$python":"object","class":"nowhere:Gone","args":[],"state":null}',
        '{"$python":"enum","class":"subprocess:Popen","value":"PIPE"}',
        '{"$python":"subprocess:Popen","value":"true"}',
        '{"$python":"decimal:Decimal","value":"many"}',
        write_lost("too-long"),
    ],
)
def test_a_class_that_is_missing_here_is_a_harness_error(text: str) -> None:
    with pytest.raises(HarnessError):
        read_reply(text)
