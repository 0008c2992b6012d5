"""A service that runs elsewhere, given by its URL. It is not fresh, and trials share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from holdfast import service_kinds
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import ReachableKind, Service, ServiceKeeper
from holdfast.world.services.mysql.audit import MyCounters
from holdfast.world.services.mysql.session import MySqlSession
from holdfast.world.services.postgres.audit import PgCounters
from holdfast.world.services.postgres.session import PgSession
from holdfast.world.services.settings import make_config_error
from holdfast.world.services.sql_service import RowCounters, SqlService, SqlSession

PORTS = {"http": 80, "https": 443, "amqp": 5672, "mongodb": 27017, "smtp": 25}
"""Default ports of schemes that no service kind handles."""
SHARED = "is external: its state stays between trials, and they share it"
UNSEEN = (
    "its writes are known from row counters and the list of tables alone: they have no statement, and other users' are "
    "among them"
)


class External:
    """One trial's access to a shared service."""

    def __init__(self, spec: ServiceSpec, url: SplitResult) -> None:
        self.spec = spec
        self._url = url
        self.upstream: tuple[str, int] | str = _read_address(spec, url)

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


class ExternalSql(SqlService, External):
    """A database by URL."""

    def __init__(self, spec: ServiceSpec, url: SplitResult, session: SqlSession, counters: RowCounters) -> None:
        super().__init__(spec, url)
        self._own_session = session
        self._counters = counters

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, f"service {self.spec.name}: {UNSEEN}")


def open_external_postgres(spec: ServiceSpec, url: SplitResult) -> ExternalSql:
    session = PgSession(spec.name, {"conninfo": urlunsplit(url._replace(scheme="postgresql"))})
    database = unquote(url.path[1:]) or unquote(url.username or "")
    return ExternalSql(spec, url, session, PgCounters(session, database, shared=True))


def open_external_mysql(spec: ServiceSpec, url: SplitResult) -> ExternalSql:
    """Open an external MySQL or MariaDB."""
    (host, port), database = _read_address(spec, url), unquote(url.path[1:])
    login: dict[str, Any] = {"host": host, "port": port, "database": database or None}
    login |= {"user": unquote(url.username or "root"), "password": unquote(url.password or "")}
    session = MySqlSession(spec.name, login)
    return ExternalSql(spec, url, session, MyCounters(session, database, shared=True))


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
    _read_address(spec, url)
    return ExternalKeeper(spec, url)


def _read_address(spec: ServiceSpec, url: SplitResult) -> tuple[str, int]:
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
