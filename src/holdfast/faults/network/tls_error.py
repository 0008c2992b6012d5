"""tls_error: the TLS handshake fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from holdfast.protocols import Call, Failed, FaultContext, Forward, Reply, Step


@dataclass(frozen=True)
class TlsError:
    """The TLS handshake fails with an alert. A connection without TLS meets nothing."""

    step: ClassVar[Step] = "tls"
    reached: ClassVar[Literal["never", "always", "maybe"]] = "never"

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise Failed(f"{call.target}: the TLS handshake failed", kind="tls")
