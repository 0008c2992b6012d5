"""A reply of an upstream server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from holdfast.http1.heads import RawFields, value_of
from holdfast.streams.body_buffer import BodyBuffer
from holdfast.streams.failures import UpstreamFailed


class UpstreamReply:
    """A reply, there as soon as its head is. Read it to the end, or `abort` it: its connection waits for that."""

    __slots__ = ("_abort", "headers", "inflow", "length", "reason", "status")

    def __init__(
        self,
        status: int,
        reason: str,
        headers: RawFields,
        inflow: BodyBuffer,
        *,
        length: int | None,
        abort: Callable[[UpstreamReply], None],
    ) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers
        self.inflow = inflow
        self.length = length
        """The declared length; None if the body is chunked or ends with the connection."""
        self._abort = abort

    def get(self, name: str) -> str | None:
        """The first header of that name, in any spelling."""
        return value_of(self.headers, name)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, undecoded. Raises UpstreamFailed where it breaks off; leaving early aborts."""
        try:
            while data := await self.inflow.get():
                yield data
        finally:
            self.abort()

    async def read(self, limit: int = 64_000_000) -> bytes:
        """The whole body; a longer one raises UpstreamFailed and aborts."""
        parts, total = [], 0
        try:
            while data := await self.inflow.get():
                parts.append(data)
                total += len(data)
                if total > limit:
                    raise UpstreamFailed("protocol", f"a reply of over {limit} bytes")
        finally:
            self.abort()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def abort(self) -> None:
        """Gives up what has not come yet, and the connection with it; nothing if all has come."""
        if not self.inflow.ended:
            self._abort(self)
