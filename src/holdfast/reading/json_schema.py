"""JSON Schema from a spec or from a server: compiled once, and nothing is ever fetched for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from holdfast.model.codec import canonical


def validator(schema: Mapping[str, Any]) -> Any:
    """A validator of the schema; ValueError if it is none, or does not hold all that it refers to."""
    return _compiled(canonical(schema))


@lru_cache(maxsize=256)
def _compiled(schema: bytes) -> Any:
    import json

    from jsonschema_rs import validator_for

    return validator_for(json.loads(schema), retriever=_fetch_nothing)


def _fetch_nothing(uri: str) -> Any:
    raise ValueError("a schema must hold all that it refers to")
