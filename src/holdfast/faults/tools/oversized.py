"""oversized: a reply that floods the context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.faults.accepted_values import first_fitting
from holdfast.faults.json_text import dump
from holdfast.faults.texts import read_texts
from holdfast.faults.values import edited, is_rows, parts, plain, put, with_field, with_items
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
            value = dump(value)  # the model reads text, whatever it contains
        return Reply(first_fitting(value, self._changes(value), ctx))

    def _changes(self, value: Any) -> Iterator[Any]:
        yield edited(value, self._pad)
        missing = self.bytes - _size(value)
        for path, part in parts(value)[1:] if missing > 0 else ():
            if isinstance(part, str):
                yield put(value, path, part + _filler(missing))
            elif is_rows(part):
                yield put(value, path, _longer(part, missing))

    def _pad(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        missing = self.bytes - _size(value)
        if missing <= 0:
            return value
        if isinstance(value, str):
            return value + _filler(missing)
        if isinstance(value, BINARY):
            return value + _filler(missing).encode()
        if is_rows(value):
            return _longer(value, missing)
        if isinstance(value, Mapping):
            return with_field(value, _free(value), _filler(missing))
        return _pad_inside(value, missing)


def _size(value: Any) -> int:
    if isinstance(value, BINARY):
        return len(value)
    return len((value if isinstance(value, str) else dump(plain(value))).encode(errors="replace"))


def _pad_inside(value: Any, missing: int) -> Any:
    """Grows the first text or list, because the object cannot get a field."""
    for path, part in parts(value)[1:]:
        if isinstance(part, str):
            return put(value, path, part + _filler(missing))
        if is_rows(part):
            return put(value, path, _longer(part, missing))
    return value


def _longer(rows: list[Any] | tuple[Any, ...], missing: int) -> Any:
    """Repeats the items; an empty list gets text."""
    if not rows:
        return with_items(rows, [_filler(missing)])
    sizes = [len(dump(plain(row)).encode(errors="replace")) + 2 for row in rows]
    rounds, rest = divmod(missing, sum(sizes))
    more = list(rows) * rounds
    for row, size in zip(rows, sizes, strict=True):
        if rest <= 0:
            break
        more.append(row)
        rest -= size
    return with_items(rows, [*rows, *more])


def _filler(size: int) -> str:
    """Harmless prose of this many bytes."""
    prose = " " + " ".join(read_texts("filler"))
    return "".join(islice(cycle([prose]), size // len(prose) + 1))[:size]


def _free(value: Mapping[Any, Any]) -> str:
    name = "details"
    while name in value:
        name += "_more"
    return name
