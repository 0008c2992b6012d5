"""Services that run in containers: their ports, and a database if the image is one."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import ServiceContainer
from holdfast.service_kinds import get_port
from holdfast.world.services.mysql.audit import MyCounters
from holdfast.world.services.mysql.session import MySqlSession
from holdfast.world.services.postgres.audit import PgCounters
from holdfast.world.services.postgres.session import PgSession, quote_name
from holdfast.world.services.settings import (
    OURS,
    MysqlSettings,
    PostgresSettings,
    hash_scram,
    read_mysql_settings,
    read_postgres_settings,
    read_redis_settings,
)
from holdfast.world.services.sql_service import RowCounters, SqlService, SqlSession

UNSEEN = (
    "its writes are known from row counters and the list of tables alone, without their statements; its user can "
    "change the counters"
)
_MINE = ("USER", "PASSWORD", "DB", "DATABASE", "ROOT_PASSWORD")


class ContainedService:
    """One trial's container."""

    def __init__(self, running: ServiceContainer, notes: tuple[str, ...], variables: Mapping[str, str]) -> None:
        self.spec = running.spec
        self.upstream: tuple[str, int] | str = running.path(get_port(running.spec))
        self.notes = notes
        self.variables = variables
        self._running = running

    @property
    def alive(self) -> bool:
        return self._running.alive

    def upstream_of(self, port: int) -> tuple[str, int] | str:
        return self._running.path(port)

    async def close(self) -> None:
        await self._running.close()


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
        super().__init__(running, (*notes, f"service {running.spec.name}: {UNSEEN}"), {"URL": settings.url})
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
        verifier = hash_scram(password, secrets.token_bytes(16))
        await session.execute(f"CREATE ROLE {quote_name(OURS)} SUPERUSER LOGIN PASSWORD '{verifier}'")
    return PgSession(running.spec.name, {**login, "user": OURS, "password": password}, settings.user)
