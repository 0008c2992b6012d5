"""A ProcessTree: the processes that an address is for.

Another program of the same user can read an agent's token; it cannot make the kernel say that it is the agent.
"""

from __future__ import annotations

import asyncio
from itertools import islice

from holdfast.processes.peers import PeerAddress, client_inode, descends, family, holder, sockets

NEAR = 200
"""Processes that are looked at first. An agent that starts more is found from the other side, which takes longer."""
TRIES = 10
WAIT_S = 0.5
"""A process may connect before we are told that it was started."""


class ProcessTree:
    """One process and all below it. With none, nobody is turned away."""

    def __init__(self) -> None:
        self.first = 0
        """The process that all others are below; 0 if it is not known."""
        self._sockets: set[int] = set()
        """Theirs, when we last looked: clients that open many connections at once are looked at once."""

    async def excludes(self, peer: PeerAddress, server_port: int) -> bool:
        """Whether the client is a process of another's. One that cannot be found is not excluded."""
        for _ in range(TRIES):
            inode = client_inode(peer, server_port) if self.first else None
            if inode is None or self._holds(inode):
                return False
            other = await asyncio.to_thread(holder, inode)
            if other is None or descends(other, self.first):
                return False
            await asyncio.sleep(WAIT_S / TRIES)
        return True

    def _holds(self, inode: int) -> bool:
        if inode in self._sockets:
            return True
        self._sockets = set()
        for pid in islice(family(self.first), NEAR):
            for one in sockets(pid):
                self._sockets.add(one)
                if one == inode:
                    return True
        return False
