"""The listeners at every address inside: a TCP plane for each server, a listener for each mock, the name server.

Every service has its own loopback address, so ports never clash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cached_property
from socket import AF_INET, SOCK_STREAM, socket
from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.model.world import SERVICE_DOMAIN, Network, ServiceSpec, WorldSpec
from holdfast.planes.tcp.names import NamePlane
from holdfast.planes.tcp.plane import TcpPlane
from holdfast.planes.tcp.transactions import TrialService
from holdfast.protocols.sandbox import Sandbox
from holdfast.protocols.service import Database, Mock, MultiPortService, Service
from holdfast.protocols.trial import TrialContext
from holdfast.service_kinds import get_port, get_protocol_traits, get_traits

if TYPE_CHECKING:
    from ssl import SSLContext

    from holdfast.planes.trial_address import TrialAddress

GATEWAY = ("127.0.0.1", 0)
"""The address inside at which a trial's planes listen, on a free port."""


class ServiceAddress(Struct, frozen=True):
    """The address of a service inside."""

    service: ServiceSpec
    host: str
    """Its loopback address."""
    ports: tuple[int, ...]
    tls: tuple[int, ...] = ()
    """Ports with TLS."""


def assign_addresses(world: WorldSpec) -> tuple[ServiceAddress, ...]:
    """Assign an address to each service, in the order of the spec."""
    addresses = []
    for n, service in enumerate(world.services, 1):
        traits, ports = get_traits(service), service.ports or (get_port(service),)
        if traits.tls:
            ports = tuple(dict.fromkeys((*(port for port in service.ports if port not in traits.tls), traits.port)))
        addresses.append(ServiceAddress(service, f"127.0.{1 + n // 250}.{n % 250 + 1}", ports, traits.tls))
    return tuple(addresses)


def list_hosts(world: WorldSpec, unresolved: Iterable[str] = ()) -> dict[str, str]:
    """Return the host names inside with their addresses; services in `unresolved` have none."""
    hidden = set(unresolved)
    hosts_by_name: dict[str, str] = {}
    for address in assign_addresses(world):
        if address.service.name not in hidden:
            hosts_by_name[address.service.name] = hosts_by_name[f"{address.service.name}{SERVICE_DOMAIN}"] = (
                address.host
            )
    for name, service in world.network.dns_overrides.items():
        if service in hosts_by_name:
            hosts_by_name[name] = hosts_by_name[service]
    return hosts_by_name


def list_listeners(world: WorldSpec) -> Iterator[tuple[str, int]]:
    """Yield every address inside that Holdfast listens on."""
    yield GATEWAY
    for address in assign_addresses(world):
        yield from ((address.host, port) for port in (*address.ports, *address.tls))


def build_variables(
    world: WorldSpec, addresses: Mapping[str, tuple[str, int]], patterns: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Return the services' variables: `<NAME>_HOST`, `_PORT`, `_URL`, and the usual names of the first ones.

    `addresses` holds the address of each, `patterns` its own values with placeholders {host} and {port}.
    """
    environ: dict[str, str] = {}
    for service in world.services:
        host, port = addresses[service.name]
        own = {key: text.format(host=host, port=port) for key, text in patterns[service.name].items()}
        url = own.pop("URL", f"http://{host}:{port}")
        prefix = service.variable
        environ |= {f"{prefix}_HOST": host, f"{prefix}_PORT": str(port), f"{prefix}_URL": url}
        if usual := get_protocol_traits(service).variable:
            environ.setdefault(usual, url)
        for key, value in own.items():
            environ.setdefault(key, value)
    return environ


NAMES = ("127.0.0.53", 53)
"""The address of the name server inside, if a fault may keep a name from resolving."""


class TrialServices(dict[str, Service]):
    """The services of one trial, by name."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network

    @property
    def databases(self) -> dict[str, Database]:
        return {name: service for name, service in self.items() if isinstance(service, Database)}

    @property
    def mocks(self) -> dict[str, Mock]:
        """The mocks by every host name that resolves to them."""
        mocks = {name: service for name, service in self.items() if isinstance(service, Mock)}
        overridden = self._network.dns_overrides.items()
        return mocks | {host: mocks[service] for host, service in overridden if service in mocks}

    @property
    def without_tables(self) -> list[str]:
        """Services that store data, but not in readable tables."""
        return [name for name, service in self.items() if not isinstance(service, Mock | Database)]

    @property
    def unaudited(self) -> dict[str, str]:
        if not self.without_tables or self.databases:
            return {}
        names = ", ".join(self.without_tables)
        return {"db_writes": f"{names}: neither PostgreSQL nor MySQL, and writes to other servers are not recorded"}

    @property
    def notes(self) -> Iterator[str]:
        """Notes about the services so far."""
        return (note for service in self.values() for note in service.notes)


@dataclass(frozen=True)
class ServicePlanes:
    """The planes of one trial in front of its services; `parts` closes them."""

    spec: WorldSpec
    sandbox: Sandbox
    services: Mapping[str, Service]
    trial_address: TrialAddress
    context: TrialContext
    leaf: Callable[[str], SSLContext | None]
    """Makes the certificate of a service."""
    disturbed: Callable[[str], bool]
    """Whether faults of the trial act on a service."""
    wrote: Callable[[], None]
    """Called for every write to a database."""
    parts: AsyncExitStack
    carried: list[TcpPlane] = field(default_factory=list)

    @cached_property
    def addresses(self) -> tuple[ServiceAddress, ...]:
        return assign_addresses(self.spec)

    def stop_faults(self) -> None:
        """Stop the faults once the agent has ended, so that they do not act on connections of checks."""
        for plane in self.carried:
            plane.stop_faults()
        self.trial_address.passes_on = True

    async def open(self, unresolved: frozenset[str]) -> dict[str, tuple[str, int]]:
        """Listen at every address; return the address of each service.

        The name server answers for `unresolved` names.
        """
        self.context.services = self._list_mock_addresses()
        if unresolved:
            await self._open_name_plane(unresolved)
        reachable = {}
        for address in self.addresses:
            await self._open_ports(address)
            # The agent uses the service's name, or its address if it has no network of its own.
            host, port = self.sandbox.address(address.host, address.ports[0])
            name = address.service.name
            reachable[name] = (name, port) if (host, port) == (address.host, address.ports[0]) else (host, port)
        return reachable

    def _list_mock_addresses(self) -> dict[tuple[str, int], tuple[str, int]]:
        """Return the real address of each mock, by every name and port that refers to it."""
        real: dict[tuple[str, int], tuple[str, int]] = {}
        hosts = list_hosts(self.spec).items()
        for address in self.addresses:
            mock = self.services[address.service.name]
            if isinstance(mock, Mock) and not isinstance(mock.upstream, str):
                names = [name for name, host in hosts if host == address.host]
                real |= {(name, port): mock.upstream for name in names for port in (*address.ports, *address.tls)}
        return real

    async def _open_name_plane(self, unresolved: frozenset[str]) -> None:
        resolved = list_hosts(self.spec, unresolved)
        by_host = {address.host: address.service.name for address in self.addresses}
        names = {name: (by_host[host], host) for name, host in list_hosts(self.spec).items() if name not in resolved}
        plane = await NamePlane(names, self.context).listen(self.sandbox.listener(*NAMES))
        self.parts.push_async_callback(plane.close)

    async def _open_ports(self, address: ServiceAddress) -> None:
        for port in (*address.ports, *address.tls):
            sock = self.sandbox.listener(address.host, port)
            service = self.services[address.service.name]
            if not isinstance(service, Mock):
                upstream = service.upstream_of(port) if isinstance(service, MultiPortService) else service.upstream
                await self._open_tcp_plane(sock, upstream, address)
            # A mock is served by the HTTP plane itself. If its connections are slow or faulty, a TCP plane takes its
            # address, and the mock moves to a port behind it.
            elif self.spec.determinism.network_latency_ms or self.disturbed(address.service.name):
                behind = socket(AF_INET, SOCK_STREAM)
                behind.bind(("127.0.0.1", 0))
                place = behind.getsockname()
                await self._serve_mock(behind, address, port)
                await self._open_tcp_plane(sock, place, address)
            else:
                await self._serve_mock(sock, address, port)

    async def _serve_mock(self, sock: socket, address: ServiceAddress, port: int) -> None:
        """Serve as the service, and as every host that the spec routes there."""
        name = address.service.name
        also = {host for host, service in self.spec.network.dns_overrides.items() if service == name}
        certificate = self.leaf(name) if port in address.tls else None
        upstream = self.services[name].upstream
        await self.trial_address.serve_as_host(
            sock, name, port, certificate, also, None if isinstance(upstream, str) else upstream
        )

    async def _open_tcp_plane(self, sock: socket, upstream: tuple[str, int] | str, address: ServiceAddress) -> None:
        service = TrialService(
            upstream,
            address.service.name,
            get_protocol_traits(address.service).wire,
            self.context,
            latency_ms=self.spec.determinism.network_latency_ms,
            wrote=lambda statement: self.wrote(),
        )
        plane = await TcpPlane(service).listen(sock)
        self.parts.push_async_callback(plane.close)
        self.carried.append(plane)
