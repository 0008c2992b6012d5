"""empty: an empty reply although data exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.faults.values import (
    choose_fitting,
    edit_value,
    get_part,
    is_rows,
    list_fields,
    replace_field,
    replace_items,
)
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class Empty:
    """Returns an empty reply: `[]`, `{}` or `""`. A record with one list keeps its other fields."""

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.EMPTY, common=True),),
        see=("invariants.claim_matches_state", "invariants.contains_any"),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        return Reply(choose_fitting(reply.value, _generate_changes(reply.value), ctx))


def _generate_changes(value: Any) -> Iterator[Any]:
    """Yield an empty value; else every list and text emptied; else every list, else every text."""
    yield edit_value(value, _empty)
    for kinds in ((list, str), (list,), (str,)):
        yield _empty_inside(value, kinds)


def _empty_inside(value: Any, kinds: tuple[type[list[Any]] | type[str], ...]) -> Any:
    if isinstance(value, kinds):
        return value[:0] if value else value
    # Parts that stay the same object need no copy of the value around them.
    inside = [(key, _empty_inside(part, kinds)) for key, part in list_fields(value)]
    for key, part in inside:
        value = value if get_part(value, (key,)) is part else replace_field(value, key, part)
    return value


def _empty(value: Any) -> Any:
    if isinstance(value, str | bytes | bytearray):
        return value[:0]
    if is_rows(value):
        return replace_items(value, [])
    if isinstance(value, set | frozenset):
        return type(value)()
    lists = [(key, part) for key, part in list_fields(value) if is_rows(part)]
    if len(lists) == 1:
        key, rows = lists[0]
        return replace_field(value, key, replace_items(rows, []))
    return {} if isinstance(value, Mapping) else None
