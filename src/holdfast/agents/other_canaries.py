"""Canaries that an agent returned next to its answer: it obeyed an attack, or it quotes a source."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from holdfast.planes.traced_call import ReadValues, list_fields


def find_other_canaries(returned: Iterable[Any], inputs: Collection[Any]) -> tuple[str, ...]:
    """Return the canaries in the fields of an agent's results, except those that only repeat its input."""
    own = [value for one in returned for value in _list_own_values(one, inputs)]
    return ReadValues(own).canaries if own else ()


def _list_own_values(returned: Any, inputs: Collection[Any]) -> list[Any]:
    """Return the keys and values of a result; none if the answer is all of it, or the last of its messages."""
    if returned is None or isinstance(returned, str | bytes | bytearray | list):
        return []
    fields = returned if isinstance(returned, dict) else _list_fields(returned)
    repeated = {id(one) for one in inputs}
    return [
        part
        for key, value in fields.items()
        if key != "messages" and id(value) not in repeated and not (isinstance(value, str) and value in inputs)
        for part in (key, value)
    ]


def _list_fields(returned: Any) -> dict[Any, Any]:
    """Return the fields of an agent's own object; none if it refuses to be inspected."""
    try:
        return dict(enumerate(returned)) if isinstance(returned, tuple) else list_fields(returned)
    except Exception:
        return {}
