"""A service that runs elsewhere, given by its URL. It is not fresh, and trials share it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit, urlunsplit

from holdfast import service_kinds
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import ReachableKind, Service, ServiceKeeper
from holdfast.world.services.settings import make_config_error

PORTS = {"http": 80, "https": 443, "amqp": 5672, "mongodb": 27017, "smtp": 25}
"""Default ports of schemes that no service kind handles."""
SHARED = "is external: its state stays between trials, and they share it"


class External:
    """One trial's access to a shared service."""

    def __init__(self, spec: ServiceSpec, url: SplitResult) -> None:
        self.spec = spec
        self._url = url
        self.upstream: tuple[str, int] | str = read_address(spec, url)

    @property
    def variables(self) -> Mapping[str, str]:
        """The URL with Holdfast's address in it."""
        parts = [part.replace("{", "{{").replace("}", "}}") for part in self._url]
        login, at, _ = parts[1].rpartition("@")
        parts[1] = f"{login}{at}{{host}}:{{port}}"
        return {"URL": urlunsplit(parts)}

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"service {self.spec.name} {SHARED}",)

    async def close(self) -> None:
        """Do nothing: the service is not Holdfast's."""


class ExternalKeeper:
    """Gives every trial the same service."""

    def __init__(self, spec: ServiceSpec, url: SplitResult) -> None:
        self._spec = spec
        self._url = url

    async def provide(self, trial: Trial, *, alone: bool) -> Service:
        """Provide the service. Faults act on connections to it, never on the server."""
        name = service_kinds.find_by_url(self._url.geturl())
        kind = None if name is None else service_kinds.build_kind(ServiceSpec(self._spec.name, name))
        if isinstance(kind, ReachableKind):
            return kind.elsewhere(self._spec, self._url)
        return External(self._spec, self._url)

    async def close(self) -> None:
        """Do nothing."""


async def open_external(spec: ServiceSpec) -> ServiceKeeper:
    """Validate the URL; the first trial is the first to connect."""
    url = urlsplit(service_kinds.get_url(spec))
    read_address(spec, url)
    return ExternalKeeper(spec, url)


def read_address(spec: ServiceSpec, url: SplitResult) -> tuple[str, int]:
    try:
        host, port = url.hostname, url.port or _find_usual_port(url) or (spec.ports or (0,))[0]
    except ValueError as bad:
        raise make_config_error(spec, f"its url has no usable port: {bad}", "a port is 1 to 65535") from bad
    if not host or not port:
        missing = "host" if not host else "port"
        raise make_config_error(spec, f"its url names no {missing}", "write it as scheme://host:port/…")
    return host, port


def _find_usual_port(url: SplitResult) -> int:
    name = service_kinds.find_by_url(url.geturl())
    if name is not None:
        return service_kinds.get_traits(ServiceSpec("", name)).port
    return PORTS.get(service_kinds.get_scheme(url.scheme), 0)
