"""JSON in pieces is the JSON of the whole."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.report.formats.files import encode_pieces

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def streamed(value: Any) -> Any:
    """Lists in maps as iterators, as a report has them."""
    if isinstance(value, dict):
        return {key: streamed(item) for key, item in value.items()}
    return iter(value) if isinstance(value, list) else value


@given(plain)
def test_pieces_are_the_same_as_the_whole(value: Any) -> None:
    whole = msgspec.json.format(msgspec.json.encode(value), indent=2)
    assert b"".join(encode_pieces(value)) == whole
    assert b"".join(encode_pieces(streamed(value))) == whole


def test_a_list_is_made_while_it_is_written() -> None:
    made = []

    def items() -> Any:
        for n in range(3):
            made.append(n)
            yield {"n": n}

    written = encode_pieces({"a": items()})
    assert next(written) == b'{\n  "a": '
    assert made == []
    assert next(written) == b'[\n    {\n      "n": 0\n    }'
    assert made == [0]


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}, ["x", "\ud800"]])
def test_half_a_character_becomes_a_replacement_character(value: Any) -> None:
    assert "�" in b"".join(encode_pieces(value)).decode()
