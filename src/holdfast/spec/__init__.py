"""Text to a Spec: both formats, every problem with its position, and the schema."""

from __future__ import annotations

from typing import Any

from holdfast.spec.explain import find_contract_problems, reject_unset_variables
from holdfast.spec.load import CheckResult, check, load
from holdfast.spec.references import Names, find_names, interpolate, read_secret_values, resolve, warn_unmasked_values
from holdfast.spec.rules.contract import LoadOptions

__all__ = [
    "CheckResult",
    "LoadOptions",
    "Names",
    "check",
    "find_contract_problems",
    "find_names",
    "interpolate",
    "json_schema",
    "load",
    "read_secret_values",
    "reject_unset_variables",
    "resolve",
    "warn_unmasked_values",
]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema 2020-12 of a spec, for editors. It loads every plug-in, so it is built on demand."""
    from holdfast.spec.catalogue.json_schema import build_json_schema

    return build_json_schema()
