"""dns_failure: the name does not resolve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.protocols.fault import Call, Failed, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class DnsFailure:
    """Makes the host name unresolvable. Clients of the proxy get 502."""

    traits: ClassVar[FaultTraits] = FaultTraits(
        step="name", reached="never", met="The client looked the name up and got no address."
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise Failed(f"{call.target}: the name does not resolve", status=502, kind="dns")
