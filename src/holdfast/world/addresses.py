"""Names and addresses inside a world: every service has a loopback address of its own, so ports never clash. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from holdfast.model.world import ServiceSpec, WorldSpec
from holdfast.service_kinds import port_of, spoken, traits_of

SUFFIX = ".services.internal"
GATEWAY = ("127.0.0.1", 0)
"""Where the planes of a trial listen inside: a free port of the first loopback address."""


class ServiceAddress(Struct, frozen=True):
    """Where a service is found inside."""

    service: ServiceSpec
    host: str
    """Its loopback address."""
    ports: tuple[int, ...]
    tls: tuple[int, ...] = ()
    """Ports on which it speaks TLS."""


def addresses(world: WorldSpec) -> tuple[ServiceAddress, ...]:
    """An address for each service, in the order of the spec."""
    return tuple(_address(service, n) for n, service in enumerate(world.services, 1))


def _address(service: ServiceSpec, n: int) -> ServiceAddress:
    host = f"127.0.{1 + n // 250}.{n % 250 + 1}"
    traits = traits_of(service)
    if not traits.tls:
        return ServiceAddress(service, host, service.ports or (port_of(service),))
    plain = tuple(dict.fromkeys((*(port for port in service.ports if port not in traits.tls), traits.port)))
    return ServiceAddress(service, host, plain, traits.tls)


def hosts(world: WorldSpec, unresolved: Iterable[str] = ()) -> dict[str, str]:
    """Every name inside and its address; services in `unresolved` have none."""
    gone = set(unresolved)
    found: dict[str, str] = {}
    for address in addresses(world):
        if address.service.name not in gone:
            found[address.service.name] = found[f"{address.service.name}{SUFFIX}"] = address.host
    for name, service in world.network.dns_overrides.items():
        if service in found:
            found[name] = found[service]
    return found


def listening(world: WorldSpec) -> Iterator[tuple[str, int]]:
    """Every address inside that we listen on."""
    yield GATEWAY
    for address in addresses(world):
        yield from ((address.host, port) for port in (*address.ports, *address.tls))


def variables(
    world: WorldSpec, reached: Mapping[str, tuple[str, int]], patterns: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """What the agent is told of its services: `<NAME>_HOST`, `_PORT`, `_URL`, and the usual names of the first ones.

    `reached` is where each one is found, `patterns` what it says of itself, with places for {host} and {port}.
    """
    found: dict[str, str] = {}
    for service in world.services:
        host, port = reached[service.name]
        told = {key: text.format(host=host, port=port) for key, text in patterns[service.name].items()}
        url = told.pop("URL", f"http://{host}:{port}")
        prefix = service.variable
        found |= {f"{prefix}_HOST": host, f"{prefix}_PORT": str(port), f"{prefix}_URL": url}
        if usual := spoken(service).variable:
            found.setdefault(usual, url)
        for key, value in told.items():
            found.setdefault(key, value)
    return found
