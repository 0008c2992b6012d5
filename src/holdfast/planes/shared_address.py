"""A SharedAddress: one address for all trials forked from one process, distinguished by the connecting process.

An agent creates its model client at import time, once for all trials, and the client keeps the address it read then.
The address therefore cannot identify the trial of a request, but the kernel can: it knows which process connected.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.http1.server import ClientConnection, Exchange, serve
from holdfast.planes.trial_address import (
    LoopbackAddress,
    OpenTrial,
    TrialServer,
    Variables,
    report_errors,
    serve_request,
)
from holdfast.processes.peers import find_owner
from holdfast.protocols.trial import TrialContext

WAIT_S = 0.5
"""How long to wait for the news of a new process: it may connect before that arrives."""


class SharedAddress(LoopbackAddress):
    """One loopback listener for many concurrent trials."""

    def __init__(self, open_trial: OpenTrial, variables: Variables) -> None:
        super().__init__(secrets.token_urlsafe(18), variables)
        self._open_trial = open_trial
        self._servers_by_pid: dict[int, TrialServer] = {}
        self._owners: dict[ClientConnection, tuple[int, TrialServer | None]] = {}
        """Connections whose process is known, keyed by the original socket: TLS may have wrapped it since."""

    @classmethod
    async def open(cls, open_trial: OpenTrial, variables: Variables) -> SharedAddress:
        shared_address = cls(open_trial, variables)
        shared_address.listener = await serve(shared_address.answer)
        report_errors(
            shared_address.listener, lambda connection: shared_address._owners.get(connection.root, (0, None))[1]
        )
        return shared_address

    @contextmanager
    def serve_trial(self, context: TrialContext) -> Iterator[Callable[[int], None]]:
        """Serve a trial; the caller passes each process of the trial to the yielded function."""
        trial_server = self._open_trial(self, context)
        pids: list[int] = []

        def add_process(pid: int) -> None:
            pids.append(pid)
            self._servers_by_pid[pid] = trial_server

        try:
            yield add_process
        finally:
            for pid in pids:
                self._servers_by_pid.pop(pid, None)
                connections = {connection for connection, (owner, _) in self._owners.items() if owner == pid}
                for connection in connections:
                    del self._owners[connection]
                self.listener.drop(connections)
            trial_server.close()

    async def close(self) -> None:
        await self.listener.close()

    async def answer(self, exchange: Exchange) -> None:
        await serve_request(exchange, self.token, await self._find_trial(exchange))

    async def _find_trial(self, exchange: Exchange) -> TrialServer | None:
        connection = exchange.connection.root
        owner = self._owners.get(connection)
        if owner is not None:
            return owner[1] if self._servers_by_pid.get(owner[0]) is owner[1] else None
        # The kernel tells which process holds the other end. A process that was just forked may connect before its
        # parent has reported it here, so the question is asked again for a moment.
        for _ in range(10):
            pid = find_owner(connection.peer, self.port, list(self._servers_by_pid))
            if pid is not None:
                alive = {connection.root for connection in self.listener.connections}
                self._owners = {connection: owner for connection, owner in self._owners.items() if connection in alive}
                self._owners[connection] = (pid, self._servers_by_pid[pid])
                return self._servers_by_pid[pid]
            await asyncio.sleep(WAIT_S / 10)
        # The process belongs to no trial. A process that inherits the connection later does not change that.
        self._owners[connection] = (0, None)
        return None
