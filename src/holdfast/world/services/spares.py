"""Keeps fresh servers ready: every trial gets an unused one, and programs next to it dump and restore it.

Those programs read what an agent left in a database, which is not trusted, so they are confined like the server.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Generic, TypeVar

from holdfast.errors import ServiceFailed
from holdfast.model.trial import Trial
from holdfast.processes.program import run_child
from holdfast.protocols.service import WarmService
from holdfast.world.services.confinement import SOCKETS, build_user_options, find_confinement
from holdfast.world.services.programs import find_sibling
from holdfast.world.services.server import Server, ServerSetup

SPARE_LIMIT = 2
"""Maximum number of waiting servers: more would only use memory, because starting one is faster than a trial."""

MOST_BYTES = 1 << 30
"""Maximum number of bytes that a program may write."""
LIMIT_S = 120.0
_READ = 2_000
_SHOWN = 300
_BLOCK = 512
_SCRIPT = 'ulimit -f "$1" && shift && exec "$@"'

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
        """Run the first program of these names that is next to the server, as its user and confined like it.

        `source` and `to` are its input and output; `skip` is the number of bytes of the input that are not read. Raises
        HarnessError with the program's last message if it fails.
        """
        program = find_sibling(self._setup.program.program, *names)
        # Files instead of pipes: a program that prints more than a pipe holds would wait for a reader, and this waits
        # for the program.
        with (
            tempfile.TemporaryFile() as messages,
            (source or Path(os.devnull)).open("rb", buffering=0) as reads,
            (to or Path(os.devnull)).open("ab") as writes,
        ):
            reads.seek(skip)
            try:
                code = await run_child(
                    self._confine([str(program), *options]),
                    LIMIT_S,
                    stdin=reads,
                    stdout=writes,
                    stderr=messages,
                    env={"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": "/", **env},
                    cwd="/",
                    **build_user_options(self._setup.user),
                )
            except OSError as refused:
                raise ServiceFailed(f"{program.name} cannot be started: {refused}") from refused
            if code != 0:
                why = f"failed: {_find_last_message(messages) or f'exit code {code}'}"
                raise ServiceFailed(f"{program.name} {f'took longer than {LIMIT_S:.0f} s' if code is None else why}")

    def _confine(self, argv: list[str]) -> list[str]:
        """Return the command with a limit on what it writes, confined like the server if that is possible."""
        words = ["/bin/sh", "-c", _SCRIPT, "sh", str(MOST_BYTES // _BLOCK), *argv]
        confinement, _ = find_confinement(self._setup.user)
        binds, prefix = {SOCKETS: self._server.socket_folder}, self._setup.program.prefix
        return words if confinement is None else confinement.wrap_command(words, binds, {str(prefix): prefix})


def _find_last_message(messages: IO[bytes]) -> str:
    """Return the last line that mentions an error, else the complete end of the output."""
    messages.seek(max(0, os.fstat(messages.fileno()).st_size - _READ))
    lines = [line.strip() for line in messages.read().decode("utf-8", "replace").split("\n") if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]  # psql prints the position below the error
    return errors[-1] if errors else " ".join(lines)[-_SHOWN:]


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
