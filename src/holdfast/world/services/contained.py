"""Services that run in containers, as the world sees them: ports, and a database where the image is one."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.model.world import AuditEvent, ServiceSpec
from holdfast.world.services.mysql_audit import MyCounters
from holdfast.world.services.mysql_session import MySqlSession
from holdfast.world.services.passwords import scram
from holdfast.world.services.pg_audit import PgCounters
from holdfast.world.services.pg_session import PgSession, quoted
from holdfast.world.services.session import Session
from holdfast.world.services.settings import (
    OURS,
    MysqlSettings,
    PostgresSettings,
    mysql_settings,
    postgres_settings,
    redis_settings,
    url,
)
from holdfast.world.services.write_tally import WriteTally, events

if TYPE_CHECKING:
    from holdfast.world.services.container import RunningContainer

UNSEEN = (
    "its writes are known from row counters and the list of tables alone, without their statements; its user can "
    "change the counters"
)
_MINE = ("USER", "PASSWORD", "DB", "DATABASE", "ROOT_PASSWORD")


class Contained:
    """One trial's container."""

    def __init__(self, running: RunningContainer, notes: tuple[str, ...], variables: Mapping[str, str]) -> None:
        self.spec = running.spec
        self.upstream: tuple[str, int] | str = running.doorway.path(running.spec.port)
        self.notes = notes
        self.variables = variables
        self._running = running

    @property
    def alive(self) -> bool:
        return self._running.alive

    def upstream_of(self, port: int) -> tuple[str, int] | str:
        return self._running.doorway.path(port)

    async def close(self) -> None:
        await self._running.close()


class ContainedPostgres(Session, Contained):
    """PostgreSQL in a container: we have an account of our own there, which the agent cannot lock us out of."""

    def __init__(
        self, running: RunningContainer, notes: tuple[str, ...], settings: PostgresSettings, own_session: PgSession
    ) -> None:
        told = {"URL": url("postgresql", settings.user, settings.password, settings.database)}
        super().__init__(running, (*notes, f"service {running.spec.name}: {UNSEEN}"), told)
        self._own_session: PgSession = own_session
        self._counters = PgCounters(own_session, settings.database)

    async def begin(self) -> None:
        async with self._own_session.session() as session:
            await self._counters.begin(session)

    async def mark(self) -> None:
        async with self._own_session.session() as session:
            await self._counters.mark(session)

    async def writes(self) -> list[AuditEvent]:
        return events(self.spec.name, WriteTally(), await self._counters.since(), time.time())


class ContainedMysql(Session, Contained):
    """MySQL or MariaDB in a container."""

    def __init__(self, running: RunningContainer, notes: tuple[str, ...], settings: MysqlSettings) -> None:
        told = {"URL": url("mysql", *settings.account, settings.database)}
        super().__init__(running, (*notes, f"service {running.spec.name}: {UNSEEN}"), told)
        user, password = ("root", settings.root_password) if settings.root_password else settings.account
        login: dict[str, Any] = {"unix_socket": self.upstream, "user": user, "password": password}
        self._own_session = MySqlSession(running.spec.name, {**login, "database": settings.database or None})
        self._counters = MyCounters(self._own_session, settings.database)

    async def mark(self) -> None:
        await asyncio.to_thread(self._counters.mark)

    async def writes(self) -> list[AuditEvent]:
        counters = await asyncio.to_thread(self._counters.since)
        return events(self.spec.name, WriteTally(), counters, time.time())


async def contained(running: RunningContainer, notes: tuple[str, ...]) -> Contained:
    """The service that a container is, by what its image is known as."""
    spec = understood(running.spec)
    if spec.kind == "postgres":
        settings = postgres_settings(spec)
        service = ContainedPostgres(running, notes, settings, await _observer(running, settings))
        await service.begin()
        return service
    if spec.kind == "mysql":
        return ContainedMysql(running, notes, mysql_settings(spec))
    if spec.kind == "redis":
        return Contained(running, notes, {"URL": url("redis", "", redis_settings(spec).password, "0")})
    return Contained(running, notes, {})


def understood(spec: ServiceSpec) -> ServiceSpec:
    """The spec with only those variables of the image that say who logs in where; the image itself gets all."""
    names = {f"{prefix}_{name}" for prefix in ("POSTGRES", "MYSQL", "MARIADB", "REDIS") for name in _MINE}
    return replace(spec, env={name: value for name, value in spec.env.items() if name in names})


async def _observer(running: RunningContainer, settings: PostgresSettings) -> PgSession:
    password = secrets.token_urlsafe(24)
    login = {"host": str(running.room), "port": str(running.spec.port), "dbname": settings.database}
    login["client_encoding"] = "utf8"  # whatever the image has prepared its data for
    theirs = PgSession(running.spec.name, {**login, "user": settings.user, "password": settings.password})
    async with theirs.session() as session:
        verifier = scram(password, secrets.token_bytes(16))
        await session.execute(f"CREATE ROLE {quoted(OURS)} SUPERUSER LOGIN PASSWORD '{verifier}'")
    return PgSession(running.spec.name, {**login, "user": OURS, "password": password}, settings.user)
