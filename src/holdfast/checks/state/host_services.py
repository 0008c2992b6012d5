"""Makes services reachable for a script on this machine by host and port, even those on Unix sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.protocols.service import Service
from holdfast.protocols.world import World
from holdfast.streams.connection_end import ConnectionEnd, dial, join

_HOST = "127.0.0.1"


@asynccontextmanager
async def open_host_services(world: World) -> AsyncIterator[dict[str, tuple[str, int]]]:
    """Yield the addresses of all services while this is open; closing it drops remaining connections."""
    forwards: list[_UnixForward] = []
    try:
        addresses = {}
        for name, service in world.services.items():
            if isinstance(service.upstream, str):
                forwards.append(await _UnixForward.open(service))
                addresses[name] = (_HOST, forwards[-1].port)
            else:
                addresses[name] = service.upstream
        yield addresses
    finally:
        for forward in forwards:
            await forward.close()


class _UnixForward:
    """A loopback port that forwards to a Unix socket."""

    def __init__(self, upstream: str) -> None:
        self.port = 0
        self._upstream = upstream
        self._server: asyncio.Server
        self._tasks: set[asyncio.Task[None]] = set()

    @staticmethod
    async def open(service: Service) -> _UnixForward:
        forward = _UnixForward(str(service.upstream))
        loop = asyncio.get_running_loop()
        forward._server = await loop.create_server(lambda: ConnectionEnd(forward._accept), _HOST, 0)
        forward.port = forward._server.sockets[0].getsockname()[1]
        return forward

    def _accept(self, end: ConnectionEnd) -> None:
        task = asyncio.get_running_loop().create_task(self._forward(end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, end: ConnectionEnd) -> None:
        other: ConnectionEnd | None = None
        try:
            other = await dial(self._upstream)
            await join(end, other)
        except OSError:
            return  # the service is gone, as the closed connection shows the script
        finally:
            end.abort()
            if other is not None:
                other.abort()

    async def close(self) -> None:
        self._server.close()
        for task in (tasks := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
