"""A service that runs elsewhere: any URL. It is not fresh, and trials share it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from holdfast.errors import UserError
from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent, ServiceSpec
from holdfast.protocols import ServiceKeeper
from holdfast.world.services.mysql_audit import MyCounters
from holdfast.world.services.mysql_session import MySqlSession
from holdfast.world.services.pg_audit import PgCounters
from holdfast.world.services.pg_session import PgSession
from holdfast.world.services.session import Session
from holdfast.world.services.write_tally import WriteTally, events

PORTS = {"postgresql": 5432, "postgres": 5432, "mysql": 3306, "mariadb": 3306, "redis": 6379, "rediss": 6379,
         "http": 80, "https": 443, "amqp": 5672, "mongodb": 27017, "smtp": 25}  # fmt: skip
SHARED = "is external: its state stays between trials, and they share it"
UNSEEN = (
    "its writes are known from row counters and the list of tables alone: they have no statement, and other users' are "
    "among them"
)


class External:
    """One trial's way to a service that is shared."""

    def __init__(self, spec: ServiceSpec, url: SplitResult) -> None:
        self.spec = spec
        self._url = url
        self.upstream: tuple[str, int] | str = _address(spec, url)

    @property
    def variables(self) -> Mapping[str, str]:
        """The same URL, with our address in it."""
        parts = [part.replace("{", "{{").replace("}", "}}") for part in self._url]
        login, at, _ = parts[1].rpartition("@")
        parts[1] = f"{login}{at}{{host}}:{{port}}"
        return {"URL": urlunsplit(parts)}

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"service {self.spec.name} {SHARED}",)

    async def close(self) -> None:
        """Nothing of it is ours."""


class ExternalPostgres(Session, External):
    """A PostgreSQL database by URL."""

    def __init__(self, spec: ServiceSpec, url: SplitResult) -> None:
        super().__init__(spec, url)
        self._own_session: PgSession = PgSession(spec.name, {"conninfo": urlunsplit(url._replace(scheme="postgresql"))})
        self._counters = PgCounters(
            self._own_session, unquote(url.path[1:]) or unquote(url.username or ""), shared=True
        )

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, f"service {self.spec.name}: {UNSEEN}")

    async def mark(self) -> None:
        async with self._own_session.session() as session:
            await self._counters.begin(session)
            await self._counters.mark(session)

    async def writes(self) -> list[AuditEvent]:
        return events(self.spec.name, WriteTally(), await self._counters.since(), time.time())


class ExternalMysql(Session, External):
    """A MySQL or MariaDB database by URL."""

    def __init__(self, spec: ServiceSpec, url: SplitResult) -> None:
        super().__init__(spec, url)
        database = unquote(url.path[1:])
        login: dict[str, Any] = {"host": self.upstream[0], "port": self.upstream[1], "database": database or None}
        login |= {"user": unquote(url.username or "root"), "password": unquote(url.password or "")}
        self._own_session = MySqlSession(spec.name, login)
        self._counters = MyCounters(self._own_session, database, shared=True)

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, f"service {self.spec.name}: {UNSEEN}")

    async def mark(self) -> None:
        await asyncio.to_thread(self._counters.mark)

    async def writes(self) -> list[AuditEvent]:
        counters = await asyncio.to_thread(self._counters.since)
        return events(self.spec.name, WriteTally(), counters, time.time())


class ExternalKeeper:
    """Gives every trial the same service."""

    def __init__(self, spec: ServiceSpec, url: SplitResult) -> None:
        self._spec = spec
        self._url = url

    async def provide(self, trial: Trial, *, alone: bool) -> External:
        """Faults act on the way to it, never on the server: it is not ours."""
        scheme = self._url.scheme.partition("+")[0]
        if scheme in ("postgresql", "postgres"):
            return ExternalPostgres(self._spec, self._url)
        if scheme in ("mysql", "mariadb"):
            return ExternalMysql(self._spec, self._url)
        return External(self._spec, self._url)

    async def close(self) -> None:
        """Nothing is kept."""


async def open_external(spec: ServiceSpec) -> ServiceKeeper:
    """Checks the URL; the service itself is first reached by a trial."""
    url = urlsplit(spec.url or "")
    _address(spec, url)
    return ExternalKeeper(spec, url)


def _address(spec: ServiceSpec, url: SplitResult) -> tuple[str, int]:
    try:
        host, port = url.hostname, url.port or PORTS.get(url.scheme.partition("+")[0]) or (spec.ports or (0,))[0]
    except ValueError as bad:
        raise UserError(f"service {spec.name}: its url has no usable port: {bad}", hint="a port is 1 to 65535") from bad
    if not host or not port:
        missing = "host" if not host else "port"
        raise UserError(f"service {spec.name}: its url names no {missing}", hint="write it as scheme://host:port/…")
    return host, port
