"""Faults that this release reads but cannot place: they need services or a world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Struct

from holdfast.spec.fields import about

_DELAY = about("How long it takes, in ms.", ge=0)


class Plain(Struct, frozen=True, kw_only=True):
    """No settings of its own."""


class Latency(Struct, frozen=True, kw_only=True):
    """Every answer comes late."""

    delay_ms: Annotated[int, _DELAY] = 1_000
    jitter_ms: Annotated[int, about("Up to so much more or less.", ge=0)] = 0


class Bandwidth(Struct, frozen=True, kw_only=True):
    """Few bytes a second."""

    rate: Annotated[int, about("In kB a second.", ge=1)] = 10


class Delayed(Struct, frozen=True, kw_only=True):
    """Acts after a delay."""

    delay_ms: Annotated[int, _DELAY] = 0


class Slicer(Struct, frozen=True, kw_only=True):
    """Data comes in small pieces."""

    average_size: Annotated[int, about("Bytes of a piece.", ge=1)] = 64
    size_variation: Annotated[int, about("Up to so many more or fewer.", ge=0)] = 0
    delay_ms: Annotated[int, _DELAY] = 0


class LimitData(Struct, frozen=True, kw_only=True):
    """The connection closes after so many bytes."""

    bytes: Annotated[int, about("How many come through.", ge=0)] = 1_024


class KilledMidTransaction(Struct, frozen=True, kw_only=True):
    """The connection dies inside a transaction."""

    at: Annotated[Literal["write", "commit"], about("After the first write, or when COMMIT is sent.")] = "write"
    outcome: Annotated[Literal["lost", "done"], about("Whether the commit happened.")] = "lost"


class OnPath(Struct, frozen=True, kw_only=True):
    """Acts on a path of the workspace."""

    path: Annotated[str, about("Where, in the workspace.", min_length=1)] = "."


_DATABASE = (
    "down_at_start", "slow_query", "lock_wait", "serialization_failure", "connections_exhausted", "read_only",
)  # fmt: skip
_WORLD = ("skew", "jump", "frozen", "killed", "memory_limit", "cpu_throttle")
_NETWORK: Mapping[str, type[Struct]] = {
    "latency": Latency,
    "bandwidth": Bandwidth,
    "down": Plain,
    "timeout": Delayed,
    "reset_peer": Delayed,
    "slicer": Slicer,
    "limit_data": LimitData,
    "slow_close": Delayed,
    "dns_failure": Plain,
    "tls_error": Plain,
    "partition": Plain,
}

FAULTS: Mapping[str, Mapping[str, type[Struct]]] = {
    "tool_faults": {},
    "llm_faults": {},
    "context_attacks": {},
    "mcp_faults": {},
    "http_faults": {},
    "service_faults": {
        **_NETWORK,
        **dict.fromkeys(_DATABASE, Plain),
        "killed_mid_transaction": KilledMidTransaction,
    },
    "world_faults": {
        **dict.fromkeys(("disk_full", "read_only", "permission", "vanished"), OnPath),
        **dict.fromkeys(_WORLD, Plain),
    },
}
