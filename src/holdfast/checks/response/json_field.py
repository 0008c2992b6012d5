"""`json_field`: a field of a JSON answer is as expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET

from holdfast.checks.json_parts import JSON_CODES, find_path_error, find_violation, judge_json, select_parts
from holdfast.checks.patterns import find_pattern_problem, lint_pattern
from holdfast.checks.values import AS_EXPECTED, Expectation, Mismatch, get_value_key, select_value_codes, to_text
from holdfast.checks.wording import shorten
from holdfast.model.observation import Exhibit
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about


@dataclass(frozen=True)
class JsonField:
    """A field of a JSON answer meets all given conditions."""

    path: Annotated[
        str,
        about("JSONPath (`$.items[0]`) or dotted path (`items.0`). Every match counts.",
              min_length=1, examples=["$.status"]),
    ]  # fmt: skip
    equals: Annotated[Any, about('An equal JSON value: 1 equals 1.0, but not "1" or true.', examples=["refunded"])] = (
        UNSET
    )
    matches: Annotated[str | None, about("A regular expression; values that are not text are read as JSON.")] = None
    contains: Annotated[Any, about("Part of a text, a key of an object, or a member of an array.")] = UNSET
    value_type: Annotated[
        Literal["string", "number", "integer", "boolean", "null", "array", "object"] | None, about("The JSON type.")
    ] = None

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="text", verbatim=True, see=("invariants.valid_json",)
    )
    codes: ClassVar[Mapping[str, str]] = {
        **JSON_CODES,
        **select_value_codes("value-above", "value-below", "value-no-number"),
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        return judge_json(exhibit.text, self._check_field, empty=True)

    def _check_field(self, answer: Any) -> Finding:
        values = select_parts(answer, self.path)
        if not values:
            return Finding(False, f"is JSON, but has nothing at {shorten(self.path)}", "json-part-missing", empty=True)
        unfit = [wrong for value in values if (wrong := self._find_mismatch(value))]
        if not unfit:
            return Finding(True, f"{shorten(self.path)} is {_describe_value(values[0])}", AS_EXPECTED)
        code, key, why = unfit[0]
        # A rule requires all parts and, negated, none: a condition that some of them meet fails it either way.
        some = f"; {len(values) - len(unfit)} of {len(values)} parts match" if len(unfit) < len(values) else ""
        return Finding(False, f"{shorten(self.path)} {why}{some}", code, key, either_way=bool(some))

    def _find_mismatch(self, value: Any) -> Mismatch | None:
        """Return the first condition that the value does not meet; None if it meets all."""
        text = _describe_value(value)
        if wrong := next(Expectation(self.equals, self.contains, self.matches).find_mismatches(value, text), None):
            return wrong
        flat = type(value)() if isinstance(value, dict | list) else value  # the content does not change its type
        if self.value_type is not None and find_violation({"type": self.value_type}, flat):
            return Mismatch("value-wrong-type", get_value_key(value), f"is {text}, not of type {self.value_type}")
        return None

    def lint(self) -> Iterable[tuple[str, str, str]]:
        return lint_pattern("matches", self.matches)

    def problems(self) -> Iterable[tuple[str, str]]:
        if fault := find_path_error(self.path):
            yield "path", fault
        yield from find_pattern_problem("matches", self.matches)
        if Expectation(self.equals, self.contains, self.matches).empty and self.value_type is None:
            yield "path", "set at least one of equals, matches, contains, value_type"


def _describe_value(value: Any) -> str:
    """Return the value for a reason: for an array or object its size, because it may be too deep to print."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'an array'} of {len(value)}"
    return shorten(to_text(value), 60)
