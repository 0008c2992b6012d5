"""Keeps fresh servers ready: every trial gets an unused one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from holdfast.model.trial import Trial
from holdfast.protocols.service import WarmService
from holdfast.world.services.confinement import SOCKETS, find_confinement
from holdfast.world.services.programs import find_sibling, run_program
from holdfast.world.services.server import Server, ServerSetup

SPARE_LIMIT = 2
"""Maximum number of waiting servers: more would only use memory, because starting one is faster than a trial."""


S = TypeVar("S", bound=WarmService)


class ServerOfTrial:
    """A service whose server belongs to one trial."""

    def __init__(self, setup: ServerSetup, server: Server, socket: str, url: str) -> None:
        self.spec = setup.spec
        self.notes = setup.notes
        self.upstream: tuple[str, int] | str = str(server.socket_folder / socket)
        self.variables: Mapping[str, str] = {"URL": url}
        self._setup = setup
        self._server = server

    @property
    def alive(self) -> bool:
        return self._server.alive

    async def close(self) -> None:
        """End the server in the background, so that the next trial does not wait; the keeper reports a failure."""
        self._server.end()
        self._setup.endings.append(asyncio.ensure_future(self._server.close()))

    @property
    def _sockets(self) -> str:
        """The folder with its socket, as the programs next to it see it."""
        return SOCKETS if find_confinement(self._setup.user)[0] else str(self._server.socket_folder)

    async def _run_program(
        self,
        names: Sequence[str],
        options: Sequence[str],
        env: Mapping[str, str],
        *,
        source: Path | None = None,
        skip: int = 0,
        to: Path | None = None,
    ) -> None:
        """Run the first program of these names that is next to the server; see `run_program`."""
        program, folder = self._setup.program, self._server.socket_folder
        argv = [str(find_sibling(program.program, *names)), *options]
        await run_program(argv, self._setup.user, program.prefix, folder, env, source=source, skip=skip, to=to)


class SpareKeeper(Generic[S]):
    """Starts the next server while a trial runs. Servers are never shared, so `alone` makes no difference."""

    def __init__(self, start: Callable[[], Awaitable[S]], done: Callable[[], Awaitable[None]]) -> None:
        """`done` is called when every server was told to end."""
        self._start = start
        self._done = done
        self._waiting: deque[asyncio.Task[S]] = deque()
        self._target = 1
        self._refill()

    async def provide(self, trial: Trial, *, alone: bool) -> S:
        while self._waiting:
            spare = self._waiting.popleft()
            # A spare that is still starting shows that trials come faster than servers start: from now on two are kept.
            if not spare.done():
                self._target = SPARE_LIMIT
            try:
                server = await spare
            finally:
                self._refill()
            if server.alive:
                return server
            await server.close()
        return await self._start()

    async def close(self) -> None:
        """End all servers."""
        spares, self._target = list(self._waiting), 0
        self._waiting.clear()
        for spare in spares:
            spare.cancel()
        ended = await asyncio.gather(*spares, return_exceptions=True)
        try:
            for server in ended:
                if not isinstance(server, BaseException):
                    await server.close()
        finally:
            await self._done()

    def _refill(self) -> None:
        while len(self._waiting) < self._target:
            self._waiting.append(asyncio.ensure_future(self._start()))
