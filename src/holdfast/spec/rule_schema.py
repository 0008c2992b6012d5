"""JSON Schema of invariants, from the registry of checks."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast import plugins
from holdfast.reading.fields import Schema
from holdfast.spec.rules import RuleKeys
from holdfast.spec.schema import closed, first_line, required, selected, shared, variant


def checks() -> Iterator[tuple[str, type]]:
    """Every check with its settings type."""
    yield from plugins.catalogue("checks")


def rule_schema(*, ids: bool, named: bool = False) -> Schema:
    """One rule: flat by its type, or with a nested check."""
    common = shared(RuleKeys, RuleKeys.__name__)
    if named:
        del common["id"]
    needed = ["id"] if ids else []
    nested = variant(
        {**common, "check": {"$ref": "#/$defs/Check"}}, [*needed, "check"], "A rule with its check inside."
    )
    flat = [
        variant(
            {**common, "type": selected(name, kind), **shared(kind, _definition(name))},
            [*needed, "type", *required(kind)],
            first_line(kind),
        )
        for name, kind in checks()
    ]
    return {"anyOf": [nested, *flat]}


def check_schema() -> Schema:
    """What stands under `check:`."""
    return {
        "anyOf": [
            variant(
                {"type": selected(name, kind), **shared(kind, _definition(name))},
                ["type", *required(kind)],
                first_line(kind),
            )
            for name, kind in checks()
        ]
    }


def rule_definitions() -> dict[str, Schema]:
    """What rules refer to: the keys that all have, and the settings of each check."""
    return {RuleKeys.__name__: closed(RuleKeys)} | {_definition(name): closed(kind) for name, kind in checks()}


def _definition(check: str) -> str:
    return f"checks.{check}"
