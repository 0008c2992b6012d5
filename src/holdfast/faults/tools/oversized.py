"""oversized: a reply that floods the context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.faults.texts import dump_json, read_texts
from holdfast.faults.values import (
    choose_fitting,
    edit_value,
    is_rows,
    list_parts,
    replace_field,
    replace_items,
    replace_part,
    to_plain,
)
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply

BINARY = (bytes, bytearray)


@dataclass(frozen=True)
class Oversized:
    """Pads the real reply: a longer text, more list items, or one more field.

    A number that a function returns cannot grow, so it is not hit; in a model's messages it is text, and is.
    """

    bytes: Annotated[int, Meta(description="The size of the reply as text or JSON.", ge=1, le=64_000_000)] = 1_000_000

    traits: ClassVar[FaultTraits] = FaultTraits(see=("context_attacks.overflow", "llm_faults.context_length"))

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        value = reply.value
        if call.plane == "tool_result" and isinstance(value, bool | int | float):
            value = dump_json(value)  # the model reads text, whatever it contains
        return Reply(choose_fitting(value, self._generate_changes(value), ctx))

    def _generate_changes(self, value: Any) -> Iterator[Any]:
        yield edit_value(value, self._pad)
        missing = self.bytes - _measure(value)
        if missing > 0:
            yield from _pad_parts(value, missing)

    def _pad(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        missing = self.bytes - _measure(value)
        if missing <= 0:
            return value
        if isinstance(value, str):
            return value + _build_filler(missing)
        if isinstance(value, BINARY):
            return value + _build_filler(missing).encode()
        if is_rows(value):
            return _repeat_rows(value, missing)
        if isinstance(value, Mapping):
            return replace_field(value, _choose_field_name(value), _build_filler(missing))
        return next(_pad_parts(value, missing), value)  # the object cannot get a field


def _measure(value: Any) -> int:
    if isinstance(value, BINARY):
        return len(value)
    return len((value if isinstance(value, str) else dump_json(to_plain(value))).encode(errors="replace"))


def _pad_parts(value: Any, missing: int) -> Iterator[Any]:
    """Yield the value with one of its texts or lists grown: each in turn."""
    for path, part in list_parts(value)[1:]:
        if isinstance(part, str):
            yield replace_part(value, path, part + _build_filler(missing))
        elif is_rows(part):
            yield replace_part(value, path, _repeat_rows(part, missing))


def _repeat_rows(rows: list[Any] | tuple[Any, ...], missing: int) -> Any:
    """Repeat the items; an empty list gets text."""
    if not rows:
        return replace_items(rows, [_build_filler(missing)])
    # Complete rounds of all rows first, then as many single rows as are missing: a page of results, repeated.
    sizes = [len(dump_json(to_plain(row)).encode(errors="replace")) + 2 for row in rows]
    rounds, rest = divmod(missing, sum(sizes))
    more = list(rows) * rounds
    for row, size in zip(rows, sizes, strict=True):
        if rest <= 0:
            break
        more.append(row)
        rest -= size
    return replace_items(rows, [*rows, *more])


def _build_filler(size: int) -> str:
    """Return harmless prose of this many bytes."""
    prose = " " + " ".join(read_texts("filler"))
    return "".join(islice(cycle([prose]), size // len(prose) + 1))[:size]


def _choose_field_name(value: Mapping[Any, Any]) -> str:
    name = "details"
    while name in value:
        name += "_more"
    return name
