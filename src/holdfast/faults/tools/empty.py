"""empty: an empty reply although data exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.faults.accepted_values import first_fitting
from holdfast.faults.values import at, edited, fields, is_rows, with_field, with_items
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
        return Reply(first_fitting(reply.value, _changes(reply.value), ctx))


def _changes(value: Any) -> Iterator[Any]:
    """An empty value; else every list and text emptied; else every list, else every text."""
    yield edited(value, _empty)
    for kinds in ((list, str), (list,), (str,)):
        yield _empty_inside(value, kinds)


def _empty_inside(value: Any, kinds: tuple[type[list[Any]] | type[str], ...]) -> Any:
    if isinstance(value, kinds):
        return value[:0] if value else value
    inside = [(key, _empty_inside(part, kinds)) for key, part in fields(value)]
    for key, part in inside:
        value = value if at(value, (key,)) is part else with_field(value, key, part)
    return value


def _empty(value: Any) -> Any:
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
