from __future__ import annotations

from typing import Any

import pytest

from holdfast.agents.conversation import ANSWER_KEYS, find_answer, to_text
from holdfast.errors import AgentUnavailable
from holdfast.reading.json_values import MISSING, compile_answer_path

DOC = {"a": {"b": [{"c": "x"}, {"c": "y"}], "0": "zero", "n": None}, "k-e y": 1, "choices": [{"message": "m"}]}


def test_response_path_as_jsonpath_or_dotted() -> None:
    for path, expected in [
        ("a.b.0.c", "x"),
        ("a.b[1].c", "y"),
        ("a.b[-1].c", "y"),
        ("a.0", "zero"),
        ("k-e y", 1),
        ("a['0']", "zero"),
        ("$.a.b[0].c", "x"),
        ("$.choices[0].message", "m"),
        ("$['a']['b'][1]['c']", "y"),
        ("$..b[?@.c == 'y'].c", "y"),
        ("$.a.b[*].c", "x\ny"),
        ("$", DOC),
        ("a.n", None),
        ("$.a.n", None),
        ("a.missing", MISSING),
        ("a.b.9.c", MISSING),
        ("a.b.word", MISSING),
        ("k-e y.deeper", MISSING),
        ("$.nope[0]", MISSING),
        ("$..nope", MISSING),
    ]:
        assert compile_answer_path(path)(DOC) == expected, (path, expected)


@pytest.mark.parametrize("path", ["$.a[", "$..", "a[", "a..b", "a]"])
def test_a_path_that_cannot_be_read_is_a_configuration_error(path: str) -> None:
    with pytest.raises(AgentUnavailable, match="response_path") as caught:
        compile_answer_path(path)
    assert caught.value.config


def test_documented_keys_are_found_without_a_path() -> None:
    for key in ANSWER_KEYS:
        assert find_answer({"id": 7, key: "x"}) == "x", key


def test_documented_keys_are_tried_in_order_and_nulls_are_passed_over() -> None:
    assert find_answer({"text": "second", "output": None, "response": "first"}) == "first"
    assert find_answer({"output": None}) is None
    assert find_answer({"id": 7}) is MISSING
    assert find_answer(["a"]) == ["a"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x", "x"),
        ({"role": "assistant", "content": "hi"}, "hi"),
        ({"message": {"content": "deep"}}, "deep"),
        ({"score": 1, "é": None}, '{"score": 1, "é": null}'),
        ([1, "é"], '[1, "é"]'),
        (5, "5"),
        (True, "true"),
        (0, "0"),
    ],
)
def test_found_values_become_text(value: Any, expected: str) -> None:
    assert to_text(value) == expected
