"""empty: nothing, where data exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.faults.values import edited, fields, is_rows, with_field, with_items
from holdfast.protocols import Call, FaultContext, Forward, Reply


@dataclass(frozen=True)
class Empty:
    """A good reply with nothing in it: `[]`, `{}`, `""`. A reply that holds one list keeps its frame around `[]`."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        return Reply(edited(reply.value, _emptied))


def _emptied(value: Any) -> Any:
    if isinstance(value, str | bytes | bytearray):
        return value[:0]
    if is_rows(value):
        return with_items(value, [])
    if isinstance(value, set | frozenset):
        return type(value)()
    lists = [(key, part) for key, part in fields(value) if is_rows(part)]
    if len(lists) == 1:
        key, rows = lists[0]
        return with_field(value, key, with_items(rows, []))
    return {} if isinstance(value, Mapping) else None
