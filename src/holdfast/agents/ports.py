"""Ports for started agents: free ones, outside the range that the system gives to outgoing connections."""

from __future__ import annotations

import errno
import os
import socket

from holdfast.errors import AgentUnavailable, HarnessError

FIRST, COUNT = 20_000, 12_000
"""Below Linux's own range, from which any connection could take a port before the agent has it."""


class Ports:
    """Hands out ports, each a good while before it comes again: one that was just used may still be held."""

    def __init__(self) -> None:
        self._next = os.getpid() * 37 % COUNT  # runs side by side begin at different places

    def take(self) -> int:
        """A port that nobody listens on now."""
        for _ in range(COUNT):
            port = FIRST + self._next
            self._next = (self._next + 1) % COUNT
            if _free(port):
                return port
        raise HarnessError(f"no free port between {FIRST} and {FIRST + COUNT}")


def check_free(host: str, port: int) -> None:
    """AgentUnavailable if something already listens where the agent is to."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return  # its own start will tell
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError as refused:
                if refused.errno == errno.EADDRINUSE:
                    raise _taken(port) from refused


def _taken(port: int) -> AgentUnavailable:
    return AgentUnavailable(
        f"port {port} is already taken, so the agent cannot be started on it",
        hint="stop what listens there, or write {port} for it in agent.endpoint: Holdfast then picks a free one, "
        "fills it in agent.command and sets PORT",
    )


def _free(port: int) -> bool:
    """Whether any program can listen there, on all addresses, without asking for it to be reused."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
