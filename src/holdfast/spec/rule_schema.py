"""JSON Schema of invariants, from the registry of checks."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast import plugins
from holdfast.reading.fields import Schema
from holdfast.spec.rules import RuleKeys
from holdfast.spec.schema import properties, required, variant


def checks() -> Iterator[tuple[str, type]]:
    """Every check with its settings type."""
    yield from plugins.catalogue("checks")


def rule_schema(*, ids: bool, named: bool = False) -> Schema:
    """One rule: flat by its type, or with a nested check."""
    common = properties(RuleKeys)
    if named:
        del common["id"]
    needed = ["id"] if ids else []
    nested = variant(
        {**common, "check": {"$ref": "#/$defs/Check"}}, [*needed, "check"], "A rule with its check inside."
    )
    flat = [
        variant(
            {**common, "type": {"const": name}, **properties(kind)},
            [*needed, "type", *required(kind)],
            kind.__doc__ or "",
        )
        for name, kind in checks()
    ]
    return {"anyOf": [nested, *flat]}


def check_schema() -> Schema:
    """What stands under `check:`."""
    return {
        "anyOf": [
            variant({"type": {"const": name}, **properties(kind)}, ["type", *required(kind)], kind.__doc__ or "")
            for name, kind in checks()
        ]
    }
