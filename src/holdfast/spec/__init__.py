"""Text to a Spec: both formats, every problem with its position, and the schema."""

from __future__ import annotations

from typing import Any

from holdfast.spec.load import Checked, check, load
from holdfast.spec.references import Names, interpolate, names, resolve, secret_values, shown_values
from holdfast.spec.rules.contract import LoadOptions
from holdfast.spec.run_requirements import refusing_unset, requires_contract

__all__ = [
    "Checked",
    "LoadOptions",
    "Names",
    "check",
    "interpolate",
    "json_schema",
    "load",
    "names",
    "refusing_unset",
    "requires_contract",
    "resolve",
    "secret_values",
    "shown_values",
]


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of a spec, for editors. It loads every plug-in, so it is made on demand."""
    from holdfast.spec.catalogue.editors import json_schema as made

    return made()
