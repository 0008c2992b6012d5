"""Who may connect to the agent, `network.ingress`: a loopback port of this machine for each port that is named."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection, Iterator

from holdfast.model.world import Isolation, Network
from holdfast.planes.port_forward import PortForward
from holdfast.protocols.sandbox import Sandbox

FEATURE = "network.ingress"
_HOST = "127.0.0.1"
_SHARED = "the agent's ports are this machine's own"
_NAMED_ALONE = "only ports that network.ingress.allow names are led to the agent"


class IngressPorts:
    """The ways to the agent of one trial. They lead to what listens inside, never to Holdfast itself."""

    def __init__(self, network: Network, *, shared: bool) -> None:
        self._network = network
        self._shared = shared
        self._forwards: list[PortForward] = []
        self._told: list[str] = []
        self._lacks: list[str] = []
        self.notes: list[str] = []
        """Of ways that begin elsewhere than the spec says."""

    async def open(self, sandbox: Sandbox, ours: Collection[int]) -> None:
        """Opens every way that the spec names; `ours` are ports inside that are Holdfast's own."""
        for port in () if self._shared else named(self._network):
            if port in ours:
                self._lacks.append(f"port {port} inside is Holdfast's own in this trial")
                continue
            try:
                at = listener(port)
            except OSError as refused:
                self._lacks.append(_refused(port, refused))
                continue
            forward = await PortForward.open(sandbox, port, at)
            self._forwards.append(forward)
            self._told.append(f"{_HOST}:{forward.port} reaches port {port} of the agent")
            if forward.port != port:
                self.notes.append(f"port {port} of this machine was taken: {self._told[-1]}")

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """One line where the spec asks for a way in: where each one begins, and what is not done."""
        if not asked(self._network):
            return ()
        always = [*lacks(self._network, shared=self._shared)]
        missing = (*self._lacks, *always)
        told = self._told or ([f"{_SHARED}: each is reached where it listens"] if self._shared and not missing else [])
        return (Isolation(FEATURE, not missing, "; ".join((*told, *missing))),)

    async def close(self) -> None:
        """Nothing leads inside any more."""
        while self._forwards:
            await self._forwards.pop().close()


def shortcoming(network: Network, *, shared: bool) -> Iterator[Isolation]:
    """What no trial on this machine can do of it; `shared`: the backend gives the agent no ports of its own."""
    missing = [*lacks(network, shared=shared)]
    for port in () if shared else named(network):
        try:
            listener(port).close()
        except OSError as refused:
            missing.append(_refused(port, refused))
    if missing:
        yield Isolation(FEATURE, False, "; ".join(missing))


def asked(network: Network) -> bool:
    return network.ingress == "allow" or bool(network.ways_in)


def named(network: Network) -> tuple[int, ...]:
    """The ports that may be reached, each once."""
    return tuple(dict.fromkeys(forward.port for forward in network.ways_in))


def lacks(network: Network, *, shared: bool) -> Iterator[str]:
    """What cannot be had whatever the ports are; `shared`: the agent has no network of its own."""
    if not shared and network.ingress == "allow":
        yield _NAMED_ALONE
    if shared and network.ingress == "deny" and network.ways_in:
        ports = ", ".join(map(str, named(network)))
        yield f"{_SHARED}: each is reached where it listens, not {ports} alone"


def listener(port: int) -> socket.socket:
    """Listens on that port of this machine, or on a free one if it is taken; OSError if it cannot be had."""
    try:
        return _bound(port)
    except OSError as refused:
        if refused.errno != errno.EADDRINUSE:
            raise
        return _bound(0)


def _bound(port: int) -> socket.socket:
    found = socket.socket()
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((_HOST, port))
        found.listen(128)
    except BaseException:
        found.close()
        raise
    found.setblocking(False)
    return found


def _refused(port: int, why: OSError) -> str:
    return f"port {port} of this machine cannot be listened on: {why.strerror}"
