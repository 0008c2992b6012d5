"""How each kind of server is run, by the name of its kind: on this machine, in a container, or elsewhere."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from msgspec.structs import replace

from holdfast import service_kinds
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import ReachableKind, Service, ServiceContainer, ServiceKeeper, WarmService
from holdfast.service_kinds import get_port
from holdfast.sqltext.lexer import quote_name
from holdfast.world.services.container.keeper import ContainedService
from holdfast.world.services.mysql.audit import MyCounters
from holdfast.world.services.mysql.server import open_mysql
from holdfast.world.services.mysql.session import MySqlSession
from holdfast.world.services.postgres.audit import PgCounters
from holdfast.world.services.postgres.server import open_postgres
from holdfast.world.services.postgres.session import PgSession, hash_password
from holdfast.world.services.redis import open_redis
from holdfast.world.services.settings import (
    OWN_ACCOUNT,
    PostgresSettings,
    make_config_error,
    read_mysql_settings,
    read_postgres_settings,
    read_redis_settings,
)
from holdfast.world.services.sql_service import SqlService

PORTS = {"http": 80, "https": 443, "amqp": 5672, "mongodb": 27017, "smtp": 25}
"""Default ports of schemes that no kind of service has."""
SHARED = "is external: its state stays between trials, and they share it"


class External:
    """One trial's access to a shared service."""

    def __init__(self, spec: ServiceSpec, url: SplitResult, *notes: str) -> None:
        self.spec = spec
        self.notes = (f"service {spec.name} {SHARED}", *(f"service {spec.name}: {note}" for note in notes))
        self.upstream: tuple[str, int] | str = read_address(spec, url)
        parts = [part.replace("{", "{{").replace("}", "}}") for part in url]
        login, at, _ = parts[1].rpartition("@")
        parts[1] = f"{login}{at}{{host}}:{{port}}"  # Holdfast's address, which the world fills in
        self.variables: Mapping[str, str] = {"URL": urlunsplit(parts)}

    async def close(self) -> None:
        """Do nothing: the service is not Holdfast's."""


class ExternalKeeper:
    """Gives every trial the same service."""

    def __init__(self, spec: ServiceSpec) -> None:
        """Raise UserError for a URL without a host or port; the first trial is the first to connect."""
        self._spec = spec
        self._url = urlsplit(service_kinds.get_url(spec))
        read_address(spec, self._url)

    async def provide(self, trial: Trial, *, alone: bool) -> Service:
        """Provide the service. Faults act on connections to it, never on the server."""
        name = service_kinds.find_by_url(self._url.geturl())
        kind = None if name is None else service_kinds.build_kind(ServiceSpec(self._spec.name, name))
        if isinstance(kind, ReachableKind):
            return kind.elsewhere(self._spec, self._url)
        return External(self._spec, self._url)

    async def close(self) -> None:
        """Do nothing."""


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


_COUNTERS_ONLY = (
    "its writes are known from row counters and the list of tables alone, without their statements; its user can "
    "change the counters"
)
_LOGIN_VARIABLES = ("USER", "PASSWORD", "DB", "DATABASE", "ROOT_PASSWORD")
_SHARED_COUNTERS = (
    "its writes are known from row counters and the list of tables alone: they have no statement, and other users' are "
    "among them"
)


# -- in a container ---------------------------------------------------------------------------------
class ContainedSql(SqlService, ContainedService):
    """A database in a container."""


def _make_contained(running: ServiceContainer, notes: tuple[str, ...], url: str) -> ContainedSql:
    return ContainedSql(running, (*notes, f"service {running.spec.name}: {_COUNTERS_ONLY}"), {"URL": url})


async def open_contained_postgres(running: ServiceContainer, notes: tuple[str, ...]) -> ContainedSql:
    """Open a PostgreSQL container and create Holdfast's account in it, which the agent cannot lock."""
    settings = read_postgres_settings(select_login_variables(running.spec, "POSTGRES"))
    session = await _create_observer(running, settings)
    return _make_contained(running, notes, settings.url).use(session, PgCounters(session, settings.database))


async def open_contained_mysql(running: ServiceContainer, notes: tuple[str, ...]) -> ContainedSql:
    settings = read_mysql_settings(select_login_variables(running.spec, "MYSQL", "MARIADB"))
    user, password = ("root", settings.root_password) if settings.root_password else settings.account
    login: dict[str, Any] = {"unix_socket": running.path(get_port(running.spec)), "user": user, "password": password}
    session = MySqlSession(running.spec.name, {**login, "database": settings.database or None})
    return _make_contained(running, notes, settings.url).use(session, MyCounters(session, settings.database))


async def open_contained_redis(running: ServiceContainer, notes: tuple[str, ...]) -> ContainedService:
    settings = read_redis_settings(select_login_variables(running.spec, "REDIS"))
    return ContainedService(running, notes, {"URL": settings.url})


def select_login_variables(spec: ServiceSpec, *prefixes: str) -> ServiceSpec:
    """Return the spec with only the image's login variables; the image itself gets all of them."""
    names = {f"{prefix}_{name}" for prefix in prefixes for name in _LOGIN_VARIABLES}
    return replace(spec, env={name: value for name, value in spec.env.items() if name in names})


async def _create_observer(running: ServiceContainer, settings: PostgresSettings) -> PgSession:
    # The agent owns the account that the image was given, and may lock or rename it. Checks need one that it does not
    # know.
    password = secrets.token_urlsafe(24)
    login = {"host": str(running.socket_folder), "port": str(get_port(running.spec)), "dbname": settings.database}
    login["client_encoding"] = "utf8"  # the values that the image has prepared its data with
    agent_session = PgSession(running.spec.name, {**login, "user": settings.user, "password": settings.password})
    async with agent_session.open_session() as session:
        verifier = hash_password(session, OWN_ACCOUNT, password)
        await session.execute(f"CREATE ROLE {quote_name(OWN_ACCOUNT)} SUPERUSER LOGIN PASSWORD '{verifier}'")
    return PgSession(running.spec.name, {**login, "user": OWN_ACCOUNT, "password": password}, settings.user)


# -- elsewhere ---------------------------------------------------------------------------------------
class ExternalSql(SqlService, External):
    """A database by URL."""


def open_external_postgres(spec: ServiceSpec, url: SplitResult) -> ExternalSql:
    session = PgSession(spec.name, {"conninfo": urlunsplit(url._replace(scheme="postgresql"))})
    database = unquote(url.path[1:]) or unquote(url.username or "")
    return ExternalSql(spec, url, _SHARED_COUNTERS).use(session, PgCounters(session, database, shared=True))


def open_external_mysql(spec: ServiceSpec, url: SplitResult) -> ExternalSql:
    (host, port), database = read_address(spec, url), unquote(url.path[1:])
    login: dict[str, Any] = {"host": host, "port": port, "database": database or None}
    login |= {"user": unquote(url.username or "root"), "password": unquote(url.password or "")}
    session = MySqlSession(spec.name, login)
    return ExternalSql(spec, url, _SHARED_COUNTERS).use(session, MyCounters(session, database, shared=True))


class Driver(NamedTuple):
    """How one kind is run."""

    open_keeper: Callable[[ServiceSpec], Awaitable[ServiceKeeper]]
    contained: Callable[[ServiceContainer, tuple[str, ...]], Awaitable[WarmService]]
    elsewhere: Callable[[ServiceSpec, SplitResult], Service]


DRIVERS: Mapping[str, Driver] = {
    "mysql": Driver(open_mysql, open_contained_mysql, open_external_mysql),
    "postgres": Driver(open_postgres, open_contained_postgres, open_external_postgres),
    "redis": Driver(open_redis, open_contained_redis, External),
}
