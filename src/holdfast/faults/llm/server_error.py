"""server_error: the provider fails with a 5xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from holdfast.faults.failures import build_failure
from holdfast.protocols.fault import Call, Failed, FaultContext, FaultTraits, Forward, Reply

_PAGE = "<html>\n<head><title>{words}</title></head>\n<body><center><h1>{words}</h1></center><hr></body>\n</html>\n"


@dataclass(frozen=True)
class ServerError:
    """Fails the call with a 5xx status, in the provider's error format or as an HTML page."""

    status: Annotated[int, Meta(description="The status.", ge=500, le=599)] = 500
    body: Annotated[Literal["provider", "html"], Meta(description="The provider's error format, or an HTML page.")] = (
        "provider"
    )

    traits: ClassVar[FaultTraits] = FaultTraits(
        see=("invariants.retries_within", "invariants.recovers_within_ms", "invariants.latency")
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        failed = build_failure(self.status, kind="server_error")
        if self.body == "html":
            page = _PAGE.format(words=failed)
            raise Failed(str(failed), status=self.status, body=page, kind="html")
        raise failed
