"""`network.ingress`: forwards loopback ports of this machine to the ports of the agent that the spec names."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from holdfast.model.capabilities import INGRESS, build_enforced, build_missing
from holdfast.model.world import Isolation, Network
from holdfast.protocols.sandbox import Sandbox
from holdfast.streams.connection_end import dial
from holdfast.streams.connection_listener import Forwarder

_HOST = "127.0.0.1"


class PortForward(Forwarder):
    """One loopback port of this machine that forwards to one port inside. Close it after use."""

    limit = 256

    def __init__(self, sandbox: Sandbox, port: int) -> None:
        super().__init__(lambda: sandbox.connect(port))
        self._sandbox = sandbox

    async def is_accepting(self, port: int) -> bool:
        """Return whether something inside accepts connections there."""
        try:
            (await dial(lambda: self._sandbox.connect(port))).close()
        except OSError:
            return False
        return True


class IngressPorts:
    """The forwarded ports of one trial. They lead to listeners inside, never to Holdfast itself."""

    def __init__(self, network: Network, *, shared: bool) -> None:
        self._network = network
        self._shared = shared
        self._forwards: list[PortForward] = []
        self._forwarded: list[str] = []
        self._missing: list[Isolation] = []
        self.notes: list[str] = []
        """Notes about forwarded ports that differ from the spec."""

    async def open(self, sandbox: Sandbox, ours: Collection[int]) -> None:
        """Forward every port that the spec names; `ours` are Holdfast's own ports inside."""
        for port in _list_forwarded_ports(self._network, shared=self._shared):
            if port in ours:
                self._missing.append(build_missing("ingress-own-port", port=port))
                continue
            try:
                at = open_listener(port)
            except OSError as refused:
                self._missing.append(build_missing("ingress-refused", port=port, why=refused.strerror))
                continue
            forward = await PortForward(sandbox, port).listen(at)
            self._forwards.append(forward)
            self._forwarded.append(f"{_HOST}:{forward.port} reaches port {port} of the agent")
            if forward.port != port:
                self.notes.append(f"port {port} of this machine was taken: {self._forwarded[-1]}")

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """What is forwarded and what is not supported, in one line; empty if the spec asks for nothing."""
        if self._network.ingress.default != "allow" and not self._network.ingress.allow:
            return ()
        missing = (*self._missing, *_list_impossible(self._network, shared=self._shared))
        shared = ["the agent's ports are this machine's own: all are reachable"] if self._shared and not missing else []
        return (_join(missing, self._forwarded or shared),)

    async def close(self) -> None:
        """Stop forwarding."""
        while self._forwards:
            await self._forwards.pop().close()


def list_unsupported_ingress(network: Network, *, shared: bool) -> Iterator[Isolation]:
    """Yield the parts of the section that no trial on this machine can do.

    `shared` means that the agent shares this machine's ports.
    """
    missing = [*_list_impossible(network, shared=shared)]
    for port in _list_forwarded_ports(network, shared=shared):
        try:
            open_listener(port).close()
        except OSError as refused:
            missing.append(build_missing("ingress-refused", port=port, why=refused.strerror))
    if missing:
        yield _join(missing)


def _list_forwarded_ports(network: Network, *, shared: bool) -> list[int]:
    """Return the ports to forward, without duplicates; none if the agent shares this machine's ports."""
    return [] if shared else list(dict.fromkeys(opened.to_port for opened in network.ingress.allow))


def _join(missing: Sequence[Isolation], addresses: Sequence[str] = ()) -> Isolation:
    """Join the missing parts into one feature; the first reason gives the code."""
    why = "; ".join((*addresses, *(isolation.why for isolation in missing)))
    return replace(missing[0], why=why) if missing else build_enforced(INGRESS, why)


def _list_impossible(network: Network, *, shared: bool) -> Iterator[Isolation]:
    """Yield the parts that are impossible for any port; `shared` means that the agent has no network of its own."""
    if not shared and network.ingress.default == "allow":
        yield build_missing("ingress-unnamed")
    if shared and network.ingress.default == "deny" and network.ingress.allow:
        ports = dict.fromkeys(str(opened.to_port) for opened in network.ingress.allow)
        yield build_missing("ingress-shared", ports=", ".join(ports))


def open_listener(port: int) -> socket.socket:
    """Listen on that port of this machine, or on a free one if it is taken; raise OSError if it cannot."""
    try:
        listener = socket.create_server((_HOST, port), backlog=128)
    except OSError as refused:
        if refused.errno != errno.EADDRINUSE:
            raise
        listener = socket.create_server((_HOST, 0), backlog=128)
    listener.setblocking(False)
    return listener
