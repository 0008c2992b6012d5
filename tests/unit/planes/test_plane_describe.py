"""Values in the ledger, and the digest that draws is drawn by."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.shorten import LIMIT, shorten
from holdfast.planes.describe import describe, digest_arguments, format_exception, is_same_value


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value


class Refuses:
    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value is ambiguous")

    def __repr__(self) -> str:
        return "array([1])"

    __hash__ = None  # type: ignore[assignment]


class Mute:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_two_values_are_the_same_if_the_agent_could_not_tell() -> None:
    for one, other, alike in [
        ("a", "a", True),
        ([1, {"a": 2}], [1, {"a": 2}], True),
        (1, True, False),
        ([1], [1.0], False),
        ([1], [True], False),
        ({"a": 1}, {"a": "1"}, False),
        (Plain(1), Plain(1), True),
        (Plain(1), Plain(2), False),
        (object(), object(), True),
        (Refuses(), Refuses(), True),
        (Mute(), Mute(), True),
        (None, "None", False),
    ]:
        assert is_same_value(one, other) is alike, (one, other, alike)


def test_the_digest_of_arguments_knows_no_order_and_no_address() -> None:
    assert digest_arguments({"a": 1, "b": 2}) == digest_arguments({"b": 2, "a": 1})
    assert digest_arguments({"client": object()}) == digest_arguments({"client": object()})
    assert digest_arguments({"f": lambda: 1}) == digest_arguments({"f": lambda: 1})
    assert digest_arguments({"a": "x"}) != digest_arguments({"a": "y"})


@pytest.mark.parametrize("odd", [{(1, 2): 3}, "\ud800", Mute(), {1, "a"}, float("nan"), b"\xff"])
def test_any_argument_has_a_digest(odd: Any) -> None:
    assert digest_arguments({"odd": odd}) == digest_arguments({"odd": odd})


def test_a_value_of_itself_has_a_digest() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert len(digest_arguments({"loop": loop})) == 12
    assert describe(loop) == "[[...]]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        ({"b": 1, "a": None}, '{"a":null,"b":1}'),
        (Mute(), "a Mute"),
        ("\ud800", "�"),
        (True, "true"),
    ],
)
def test_a_value_is_described(value: Any, text: str) -> None:
    assert describe(value) == text


def test_a_long_value_is_shortened_in_the_middle() -> None:
    text = shorten("a" * 500 + "z" * 500)
    assert len(text) <= LIMIT
    assert text.startswith("aaa")
    assert text.endswith("zzz")


def test_an_exception_is_reported_in_a_line() -> None:
    assert format_exception(ValueError("\x1b[91mx\x1b[0m")) == "ValueError: x"
    assert format_exception(KeyboardInterrupt()) == "KeyboardInterrupt"
