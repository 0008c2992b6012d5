"""malformed: the real reply, corrupted."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from holdfast.faults.texts import dump_json, parse_json
from holdfast.faults.values import decode_text, is_record, is_rows, to_plain
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class Malformed:
    """Returns the real reply, cut off or corrupted so that it does not parse."""

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.MALFORMED),), see=("tool_faults.schema_drift",)
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        return Reply(_break_value(reply.value, ctx.rng))


def _break_value(value: Any, rng: Random) -> Any:
    if isinstance(value, bytes | bytearray):
        text = decode_text(value)
        if text is not None and parse_json(text) is not None:
            return type(value)(_cut_json(text, rng).encode())
        return value[: _choose_cut(len(value), rng)] + b"\xff"
    if isinstance(value, str):
        # A broken encoding leaves the replacement character behind.
        return (
            _cut_json(value, rng) if parse_json(value) is not None else value[: _choose_cut(len(value), rng)] + "\ufffd"
        )
    data = to_plain(value)
    return _cut_json(dump_json(data if is_record(value) or is_rows(value) else {"result": data}), rng)


def _cut_json(text: str, rng: Random) -> str:
    """Return a JSON object or array without its end, so that it does not parse."""
    body = text.strip()
    return body[: _choose_cut(len(body), rng)]


def _choose_cut(length: int, rng: Random) -> int:
    low = max(1, length // 3)
    return min(rng.randint(low, max(low, 2 * length // 3)), max(length - 1, 0))
