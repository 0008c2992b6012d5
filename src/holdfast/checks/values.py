"""Compares values as JSON with what a rule expects: numbers by value, booleans are not numbers, text is exact."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET, Struct

from holdfast.checks.patterns import search
from holdfast.checks.wording import shorten
from holdfast.model.codec import encode
from holdfast.model.fingerprint import compute_fingerprint

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


def is_equal(actual: Any, wanted: Any) -> bool:
    """Return whether two JSON values are equal; 1 equals 1.0, but neither true nor "1"."""
    # In Python `True == 1`, but in JSON they are different values, and a rule that expects 1 must not accept true.
    if isinstance(actual, bool) or isinstance(wanted, bool):
        return actual is wanted
    if isinstance(actual, int | float) and isinstance(wanted, int | float):
        return actual == wanted
    if isinstance(actual, list | tuple) and isinstance(wanted, list | tuple):
        return len(actual) == len(wanted) and all(is_equal(a, b) for a, b in zip(actual, wanted, strict=True))
    if isinstance(actual, dict) and isinstance(wanted, dict):
        return actual.keys() == wanted.keys() and all(is_equal(actual[key], wanted[key]) for key in actual)
    return type(actual) is type(wanted) and bool(actual == wanted)


def to_number(value: Any) -> int | float | None:
    """Return the value as a number, also from text; None if it is not one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or len(value) > 400 or not _NUMBER.fullmatch(value):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def has_part(value: Any, wanted: Any, texts: Iterable[str] = ()) -> bool:
    """Return whether the value has the part: a map a key, a list a member, a scalar or one of the texts a substring."""
    if isinstance(value, dict):
        is_substring = isinstance(wanted, str) and wanted in value
    elif isinstance(value, list):
        is_substring = any(is_equal(item, wanted) for item in value)
    else:
        is_substring = to_text(wanted) in to_text(value)
    return is_substring or any(to_text(wanted) in text for text in texts)


def to_text(value: Any) -> str:
    """Return the value as a regex sees it: text unchanged, everything else as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


_CODES = {
    "value-above": "The value is too large.",
    "value-as-expected": "The value is as expected.",
    "value-below": "The value is too small.",
    "value-differs": "The value is different.",
    "value-lacks": "The value lacks a part.",
    "value-no-match": "The value does not match the pattern.",
    "value-no-number": "The value is not a number.",
    "value-wrong-type": "The value has the wrong type.",
}
AS_EXPECTED = "value-as-expected"


def select_value_codes(*without: str) -> Mapping[str, str]:
    """Return the codes of checks that compare a value, without those of operators that a check lacks."""
    return {code: meaning for code, meaning in _CODES.items() if code not in without}


class Mismatch(NamedTuple):
    """One condition that a value does not meet."""

    code: str
    key: tuple[str, ...]
    why: str
    """The end of a sentence that begins with the value's name: `is 2, not 1`."""


class Expectation(Struct, frozen=True):
    """A rule's conditions on a value; every condition that is set must be true."""

    equals: Any = UNSET
    contains: Any = UNSET
    matches: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    one_of: tuple[Any, ...] | None = None

    @property
    def empty(self) -> bool:
        limits = (self.matches, self.at_least, self.at_most, self.one_of)
        return self.equals is UNSET and self.contains is UNSET and all(limit is None for limit in limits)

    def find_mismatches(
        self,
        value: Any,
        value_text: str,
        *,
        equal: Callable[[Any, Any], bool] = is_equal,
        readings: Callable[[Any], Iterable[str]] | None = None,
    ) -> Iterator[Mismatch]:
        """Yield every condition that the value does not meet.

        `readings` are the texts to search for a pattern or a part; by default a pattern is matched with the value's own
        text.
        """
        if self.equals is not UNSET and not equal(value, self.equals):
            why = f"is {value_text}, not {_format_value(self.equals)}"
            yield Mismatch("value-differs", get_value_key(value, self.equals), why)
        if self.one_of is not None and not any(equal(value, one) for one in self.one_of):
            yield Mismatch(
                "value-differs", get_value_key(value), f"is {value_text}, none of {_format_value(list(self.one_of))}"
            )
        if self.contains is not UNSET and not has_part(value, self.contains, readings(value) if readings else ()):
            yield Mismatch(
                "value-lacks",
                get_value_key(value),
                f"is {value_text}, which does not contain {_format_value(self.contains)}",
            )
        if self.matches is not None:
            texts = readings(value) if readings else (to_text(value),)
            if all(search(self.matches, text, "") is None for text in texts):
                why = f"is {value_text}, which does not match {shorten(self.matches, 60)}"
                yield Mismatch("value-no-match", get_value_key(value), why)
        if self.at_least is not None or self.at_most is not None:
            yield from self._check_bounds(value, value_text)

    def _check_bounds(self, value: Any, text: str) -> Iterator[Mismatch]:
        number = to_number(value)
        if number is None:
            yield Mismatch("value-no-number", get_value_key(value), f"is {text}, which is not a number")
        elif self.at_least is not None and number < self.at_least:
            yield Mismatch("value-below", (), f"is {number:g}, less than {self.at_least:g}")
        elif self.at_most is not None and number > self.at_most:
            yield Mismatch("value-above", (), f"is {number:g}, more than {self.at_most:g}")


def get_value_key(value: Any, wanted: Any = None) -> tuple[str, ...]:
    """Return the key that groups wrong values by cause: too high and too low are two causes, and so are two words."""
    if isinstance(value, dict | list):
        return ("object" if isinstance(value, dict) else "array",)
    if value is None or isinstance(value, bool):
        return (to_text(value),)
    number, limit = to_number(value), to_number(wanted)
    if number is not None and limit is not None:
        return ("above" if number > limit else "below",)
    return ("number",) if number is not None else (compute_fingerprint(to_text(value)),)


def _format_value(value: Any) -> str:
    return shorten(to_text(value), 60)
