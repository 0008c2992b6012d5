"""`valid_json`: the complete answer is JSON, and matches a schema if there is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from holdfast.checks import json_parts
from holdfast.checks.wording import shorten
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import Exhibit
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about


@dataclass(frozen=True)
class ValidJson:
    """The whole answer is one JSON value, optionally with a `path` and a `schema`."""

    schema: Annotated[dict[str, Any] | None, about("A JSON Schema for the answer, or for its part at `path`.")] = None
    path: Annotated[
        str | None,
        about(
            "JSONPath (`$.items[0]`) or dotted path (`items.0`) of a part that must exist.",
            examples=["$.total"],
        ),
    ] = None

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="text", verbatim=True, see=("invariants.json_field",)
    )
    codes: ClassVar[Mapping[str, str]] = {
        **json_parts.JSON_CODES,
        "json-valid": "The answer is JSON as required.",
        "schema-broken": "The JSON breaks the schema.",
        "schema-cannot-fit": "No JSON can satisfy the schema.",
    }

    def decide(self, exhibit: Exhibit) -> Finding:
        # Which of two equal keys a reader takes matters only if a part is selected.
        unique = self.path is not None or self.schema is not None
        return json_parts.judge_json(exhibit.text, self._check_value, unique=unique)

    def _check_value(self, value: Any) -> Finding:
        values = [value] if self.path is None else json_parts.select_parts(value, self.path)
        if not values:
            return Finding(False, f"is JSON, but has nothing at {shorten(str(self.path))}", "json-part-missing")
        if self.schema is not None and (never := json_parts.explain_unsatisfiable_schema(self.schema)):
            return Finding(None, never, "schema-cannot-fit")
        for part in values if self.schema is not None else ():
            if broken := json_parts.find_violation(self.schema or {}, part):
                return Finding(
                    False, f"is JSON, but breaks the schema: {broken}", "schema-broken", (compute_fingerprint(broken),)
                )
        with_schema = " that matches the schema" if self.schema is not None else ""
        where = f" with {shorten(self.path)}" if self.path else ""
        return Finding(True, f"is JSON{with_schema}{where}", "json-valid")

    def lint(self) -> Iterable[tuple[str, str, str]]:
        if (
            self.schema is not None
            and json_parts.find_schema_error(self.schema) is None
            and (why := json_parts.explain_unsatisfiable_schema(self.schema))
        ):
            yield "lint-never-matches", "schema", why

    def problems(self) -> Iterable[tuple[str, str]]:
        if self.schema is not None and (fault := json_parts.find_schema_error(self.schema)):
            yield "schema", fault
        if self.path is not None and (fault := json_parts.find_path_error(self.path)):
            yield "path", fault
