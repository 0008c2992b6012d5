"""tls_error: the TLS handshake fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.protocols.fault import MET_LOSS, Call, Failed, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class TlsError:
    """Makes the TLS handshake fail. A connection without TLS is not hit."""

    traits: ClassVar[FaultTraits] = FaultTraits(step="tls", reached="never", met=MET_LOSS)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise Failed(f"{call.target}: the TLS handshake failed", kind="tls")
