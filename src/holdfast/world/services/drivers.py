"""How each kind of server is run, by the name of its kind: on this machine, in a container, or elsewhere."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlunsplit

from msgspec.structs import replace

from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Service, ServiceContainer, ServiceKeeper, WarmService
from holdfast.service_kinds import get_port
from holdfast.world.services.container.keeper import ContainedService
from holdfast.world.services.external import External, read_address
from holdfast.world.services.mysql.audit import MyCounters
from holdfast.world.services.mysql.server import open_mysql
from holdfast.world.services.mysql.session import MySqlSession
from holdfast.world.services.postgres.audit import PgCounters
from holdfast.world.services.postgres.server import open_postgres
from holdfast.world.services.postgres.session import PgSession, hash_password, quote_name
from holdfast.world.services.redis import open_redis
from holdfast.world.services.settings import (
    OURS,
    MysqlSettings,
    PostgresSettings,
    read_mysql_settings,
    read_postgres_settings,
    read_redis_settings,
)
from holdfast.world.services.sql_service import RowCounters, SqlService, SqlSession

_COUNTED = (
    "its writes are known from row counters and the list of tables alone, without their statements; its user can "
    "change the counters"
)
_MINE = ("USER", "PASSWORD", "DB", "DATABASE", "ROOT_PASSWORD")
_SHARED_COUNTERS = (
    "its writes are known from row counters and the list of tables alone: they have no statement, and other users' are "
    "among them"
)


# -- in a container ---------------------------------------------------------------------------------
class ContainedSql(SqlService, ContainedService):
    """A database in a container."""

    def __init__(
        self,
        running: ServiceContainer,
        notes: tuple[str, ...],
        settings: PostgresSettings | MysqlSettings,
        session: SqlSession,
        counters: RowCounters,
    ) -> None:
        super().__init__(running, (*notes, f"service {running.spec.name}: {_COUNTED}"), {"URL": settings.url})
        self._own_session = session
        self._counters = counters


async def open_contained_postgres(running: ServiceContainer, notes: tuple[str, ...]) -> ContainedSql:
    """Open a PostgreSQL container and create Holdfast's account in it, which the agent cannot lock."""
    settings = read_postgres_settings(select_login_variables(running.spec, "POSTGRES"))
    session = await _create_observer(running, settings)
    counters = PgCounters(session, settings.database)
    async with session.open_session() as first:
        await counters.warm_up(first)
    return ContainedSql(running, notes, settings, session, counters)


async def open_contained_mysql(running: ServiceContainer, notes: tuple[str, ...]) -> ContainedSql:
    """Open a MySQL or MariaDB container."""
    settings = read_mysql_settings(select_login_variables(running.spec, "MYSQL", "MARIADB"))
    user, password = ("root", settings.root_password) if settings.root_password else settings.account
    login: dict[str, Any] = {"unix_socket": running.path(get_port(running.spec)), "user": user, "password": password}
    session = MySqlSession(running.spec.name, {**login, "database": settings.database or None})
    return ContainedSql(running, notes, settings, session, MyCounters(session, settings.database))


async def open_contained_redis(running: ServiceContainer, notes: tuple[str, ...]) -> ContainedService:
    settings = read_redis_settings(select_login_variables(running.spec, "REDIS"))
    return ContainedService(running, notes, {"URL": settings.url})


def select_login_variables(spec: ServiceSpec, *prefixes: str) -> ServiceSpec:
    """Return the spec with only the image's login variables; the image itself gets all of them."""
    names = {f"{prefix}_{name}" for prefix in prefixes for name in _MINE}
    return replace(spec, env={name: value for name, value in spec.env.items() if name in names})


async def _create_observer(running: ServiceContainer, settings: PostgresSettings) -> PgSession:
    password = secrets.token_urlsafe(24)
    login = {"host": str(running.socket_folder), "port": str(get_port(running.spec)), "dbname": settings.database}
    login["client_encoding"] = "utf8"  # the values that the image has prepared its data with
    theirs = PgSession(running.spec.name, {**login, "user": settings.user, "password": settings.password})
    async with theirs.open_session() as session:
        verifier = hash_password(session, OURS, password)
        await session.execute(f"CREATE ROLE {quote_name(OURS)} SUPERUSER LOGIN PASSWORD '{verifier}'")
    return PgSession(running.spec.name, {**login, "user": OURS, "password": password}, settings.user)


# -- elsewhere ---------------------------------------------------------------------------------------
class ExternalSql(SqlService, External):
    """A database by URL."""

    def __init__(self, spec: ServiceSpec, url: SplitResult, session: SqlSession, counters: RowCounters) -> None:
        super().__init__(spec, url)
        self._own_session = session
        self._counters = counters

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, f"service {self.spec.name}: {_SHARED_COUNTERS}")


def open_external_postgres(spec: ServiceSpec, url: SplitResult) -> ExternalSql:
    session = PgSession(spec.name, {"conninfo": urlunsplit(url._replace(scheme="postgresql"))})
    database = unquote(url.path[1:]) or unquote(url.username or "")
    return ExternalSql(spec, url, session, PgCounters(session, database, shared=True))


def open_external_mysql(spec: ServiceSpec, url: SplitResult) -> ExternalSql:
    """Open an external MySQL or MariaDB."""
    (host, port), database = read_address(spec, url), unquote(url.path[1:])
    login: dict[str, Any] = {"host": host, "port": port, "database": database or None}
    login |= {"user": unquote(url.username or "root"), "password": unquote(url.password or "")}
    session = MySqlSession(spec.name, login)
    return ExternalSql(spec, url, session, MyCounters(session, database, shared=True))


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
