"""JSON Schema of invariants, from the registry of checks."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast import plugins
from holdfast.reading.fields import Schema
from holdfast.spec.later import CHECKS
from holdfast.spec.rules import RuleKeys
from holdfast.spec.schema import properties, required, variant


def checks() -> Iterator[tuple[str, type, bool]]:
    """Every check with its settings type, and whether this release only reads it."""
    for name, plugin in plugins.catalogue("checks"):
        yield name, plugin, False
    for name, kind in CHECKS.items():
        yield name, kind, True


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
        for name, kind, _ in checks()
    ]
    return {"anyOf": [nested, *flat]}


def check_schema() -> Schema:
    """What stands under `check:`."""
    return {
        "anyOf": [
            variant({"type": {"const": name}, **properties(kind)}, ["type", *required(kind)], kind.__doc__ or "")
            for name, kind, _ in checks()
        ]
    }
