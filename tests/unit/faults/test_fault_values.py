from __future__ import annotations

import copy
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType, SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.faults import values
from holdfast.faults.values import NO_PLACE, TRIES, change_each_text, choose_fitting

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class Frozen:
    x: int
    y: int


@dataclass(slots=True)
class Slotted:
    x: int
    y: int


class Packed(msgspec.Struct, frozen=True):
    x: int
    y: int


class Model:
    """Speaks as pydantic does."""

    model_fields = {"x": None, "y": None}
    model_extra = None

    def __init__(self, x, y):
        self.x, self.y = x, y

    def model_copy(self, update):
        return Model(**{"x": self.x, "y": self.y, **update})


RECORDS = [
    {"x": 1, "y": 2},
    OrderedDict(x=1, y=2),
    Point(1, 2),
    Frozen(1, 2),
    Slotted(1, 2),
    Packed(1, 2),
    Model(1, 2),
    SimpleNamespace(x=1, y=2),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_a_field_is_changed_in_a_copy_of_the_same_kind(record):
    changed = values.replace_field(record, "x", 9)
    assert type(changed) is type(record)
    assert values.list_fields(changed) == [("x", 9), ("y", 2)]
    assert values.list_fields(record) == [("x", 1), ("y", 2)]


def test_a_pydantic_model_is_copied_with_its_extra_fields():
    import pydantic

    kind = pydantic.create_model("Quote", __config__={"extra": "allow", "frozen": True}, price=(float, ...))
    quote = kind(price=1.5, note="x")
    assert values.list_fields(quote) == [("price", 1.5), ("note", "x")]
    assert values.replace_field(quote, "note", "y") == kind(price=1.5, note="y")
    assert values.replace_field(quote, "price", "text").price == "text"
    assert quote == kind(price=1.5, note="x")


def test_a_read_only_mapping_becomes_a_dict():
    assert values.replace_field(MappingProxyType({"x": 1}), "x", 2) == {"x": 2}


def test_a_scalar_has_no_parts():
    for scalar in [None, 1, 1.5, True, "text", b"bytes", int, len, ValueError("x"), object()]:
        assert values.list_fields(scalar) == [], scalar


def test_put_changes_one_part_and_shares_the_rest():
    before = {"rows": [{"a": 1}, {"a": 2}], "other": [3]}
    after = values.replace_part(before, ("rows", 1, "a"), 9)
    assert after == {"rows": [{"a": 1}, {"a": 9}], "other": [3]}
    assert before["rows"][1] == {"a": 2}
    assert after["other"] is before["other"]


def test_parts_of_a_value_that_holds_itself_come_to_an_end():
    knot = {"name": "knot"}
    knot["children"] = [{"parent": knot, "n": n} for n in range(50)]
    assert 100 < len(values.list_parts(knot)) < 300
    assert values.to_plain(knot)["children"][0]["parent"] == "<dict>"


def test_plain_data_shows_no_addresses():
    assert values.to_plain({"o": object(), "p": Point(1, None), 3: b"x"}) == {
        "o": "<object>",
        "p": {"x": 1, "y": None},
        "3": "x",
    }


def test_edit_value_parses_json_text_and_bytes():
    def add(data):
        return {**data, "b": 2} if isinstance(data, dict) else data

    assert values.edit_value('{"a":1}', add) == '{"a":1,"b":2}'
    assert values.edit_value(b'{"a": 1}\n', add) == b'{"a": 1, "b": 2}\n'
    assert values.edit_value({"a": 1}, add) == {"a": 1, "b": 2}


@pytest.mark.parametrize("value", ['{ "a" :1}', b"[1,2 ]", "plain", b"\xff\x00", 5])
def test_edit_value_returns_the_same_object_if_nothing_changed(value):
    assert values.edit_value(value, lambda data: data) is value


def test_edit_value_passes_binary_data_unchanged():
    assert values.edit_value(b"\xff\x00", lambda data: data[:1]) == b"\xff"


def test_snapshot_is_out_of_reach_and_never_fails():
    rows = [{"a": 1}]
    kept = values.copy_value(rows)
    rows[0]["a"] = 2
    assert kept == [{"a": 1}]
    lock = (n for n in ())
    assert values.copy_value(lock) is lock


def test_same_survives_values_that_cannot_be_compared():
    class Array:
        def __eq__(self, other):
            raise ValueError("ambiguous")

    assert not values.are_equal(Array(), Array())
    assert values.are_equal([1], [1])


json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_data)
def test_every_part_is_found_at_its_path_and_put_there_changes_nothing(data):
    before = copy.deepcopy(data)
    for path, part in values.list_parts(data):
        assert values.get_part(data, path) is part
        assert values.replace_part(data, path, part) == before


def test_a_list_of_a_kind_of_its_own_stays_of_its_kind():
    class Rows(list):
        pass

    changed = values.replace_items(Rows([1, 2]), [3])
    assert (type(changed), changed) == (Rows, [3])


# Which of the changes of a value are tried where the client may refuse some.


def test_one_text_of_every_place_is_tried_before_a_second_of_any() -> None:
    rows = [{"kind": "a long word of an enum", "id": {"code": "x"}} for _ in range(TRIES)]
    value = {"rows": rows, "note": "free"}
    tried = list(change_each_text(value, lambda text: "changed"))
    assert tried[0]["rows"][0]["kind"] == "changed"
    assert tried[1]["note"] == "changed"
    assert tried[2]["rows"][0]["id"]["code"] == "changed"
    assert len(tried) == 2 * TRIES + 1
    assert value == {"rows": rows, "note": "free"}


def test_a_free_text_is_found_after_any_number_of_others(context: Any) -> None:
    ctx = context()
    ctx.fits = lambda value: value["note"] == "changed"
    value = {"rows": [{"kind": f"a long word {n}"} for n in range(TRIES * 3)], "note": "free"}
    assert choose_fitting(value, change_each_text(value, lambda text: "changed"), ctx)["note"] == "changed"


def test_the_number_of_tries_is_limited_and_reported(context: Any) -> None:
    value, seen = "value", []
    ctx = context()
    ctx.fits = lambda other: bool(seen.append(other))
    assert choose_fitting(value, count(), ctx) is value
    assert seen == list(range(TRIES))
    assert f"the first {TRIES} places" in ctx.idle
    assert choose_fitting(value, range(TRIES), ctx) is value
    assert ctx.idle == NO_PLACE
