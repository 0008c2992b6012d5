"""Deep JSON is read as Python's own reader reads the shallow: the same values, the same texts refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.reading import json_values

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 2]))
def test_the_same_values(value: Any, indent: int | None) -> None:
    assert json_values._parse_iteratively(json.dumps(value, indent=indent), json.JSONDecoder()) == value


@given(VALUES)
def test_the_same_text(value: Any) -> None:
    assert "".join(json_values._write_iteratively(value)) == json.dumps(value, ensure_ascii=False)


@given(VALUES, st.integers(0, 200), st.sampled_from('[]{},:"1 x'))
def test_the_same_texts_are_refused(value: Any, at: int, sign: str) -> None:
    text = json.dumps(value)
    broken = text[: at % (len(text) + 1)] + sign + text[at % (len(text) + 1) + 1 :]
    try:
        expected = json.loads(broken)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            json_values._parse_iteratively(broken, json.JSONDecoder())
    else:
        assert json_values._parse_iteratively(broken, json.JSONDecoder()) == expected


def test_any_depth() -> None:
    found = json_values.parse_json('{"a":[' * 50_000 + "]}" * 50_000)
    depth = 0
    while found:
        found, depth = next(iter(found.values())) if isinstance(found, dict) else found[0], depth + 1
    assert depth == 99_999


def test_a_path_that_cannot_follow_the_depth_does_not_claim_that_nothing_is_there() -> None:
    deep = json_values.parse_json('{"a":' * 20_000 + "1" + "}" * 20_000)
    with pytest.raises(RecursionError):
        json_values.compile_path("$..a")(deep)
    assert json_values.compile_answer_path("$..a")(deep) is json_values.MISSING
