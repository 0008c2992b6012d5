"""A database of one trial: its own server, a container, or an external one.

The differences between PostgreSQL and MySQL are behind three drivers: a session, row counters, a statement log. The
rows of a result are stored in bounded memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from datetime import date, timedelta
from datetime import time as day_time
from decimal import Decimal
from typing import Any, Protocol, Self

from holdfast.errors import HarnessError, QueryFailed, ServiceFailed
from holdfast.model.shorten import get_beginning
from holdfast.model.world import AuditEvent, ServiceSpec
from holdfast.protocols.service import Rows
from holdfast.sqltext.script import ScriptStatement
from holdfast.world.services.log import StatementLog
from holdfast.world.services.spares import ServerOfTrial
from holdfast.world.services.write_tally import Counters, WriteTally, build_events


class SqlSession(Protocol):
    """Access to one database."""

    async def query(self, sql: str, *, timeout_s: float, keep: int) -> Rows: ...

    async def execute(self, sql: str) -> None: ...

    async def prepare(self, sql: str) -> None: ...


def make_lost_error(name: str, after_s: float, text: str) -> ServiceFailed:
    """Return the error of a connection that ended during a query."""
    return ServiceFailed(
        f"service {name}: the connection was lost after {after_s:.1f} s: {text}. Is the machine out of memory, or was "
        "the server stopped?"
    )


def make_connect_error(name: str, text: str, *, missing: str = "", denied: bool = False) -> HarnessError | QueryFailed:
    """Return why no session could be opened; `missing` is the server's code for a database that does not exist."""
    if missing:
        return QueryFailed(f"service {name}: {text}", state=missing)
    if denied:
        text = f"the database refuses the login: {text}. Is the password in the spec correct?"
        return HarnessError(f"service {name}: {text}", code="login-refused")
    text = f"the database cannot be reached: {text}. Is the server running, and are host and port right?"
    return ServiceFailed(f"service {name}: {text}")


def make_statement_error(statement: ScriptStatement, message: str, state: str, *, below: int = 0) -> QueryFailed:
    """Return the error of a fixture's statement; the server found it so many lines below the statement's first."""
    short = get_beginning(statement.text, 120)
    return QueryFailed(f"line {statement.line + below}: {message}, in: {short}", state=state)


class RowCounters(Protocol):
    """The rows and tables that changed since the snapshot."""

    async def mark(self) -> None: ...

    async def read_changes(self) -> Counters: ...


class SqlService:
    """Implements Database for a service, on the two drivers that `use` attaches."""

    spec: ServiceSpec
    _own_session: SqlSession
    _counters: RowCounters

    def use(self, own_session: SqlSession, counters: RowCounters) -> Self:
        self._own_session = own_session
        self._counters = counters
        return self

    async def query(self, sql: str, *, timeout_s: float, keep: int = 100) -> Rows:
        return await self._own_session.query(sql, timeout_s=timeout_s, keep=keep)

    async def execute(self, sql: str) -> None:
        await self._own_session.execute(sql)

    async def prepare(self, sql: str) -> None:
        await self._own_session.prepare(sql)

    async def mark(self) -> None:
        await self._counters.mark()

    async def writes(self) -> list[AuditEvent]:
        counters = await self._counters.read_changes()  # before the log is read: it ends the sessions of the agent
        return build_events(self.spec.name, self._read_tally(), counters, time.time())

    def _read_tally(self) -> WriteTally:
        """Return the statements since the snapshot; only Holdfast's own server logs them."""
        return WriteTally()


class SqlServerOfTrial(SqlService, ServerOfTrial):
    """A separate database server for each trial, with its statements logged for the audit."""

    _log: StatementLog

    def _read_tally(self) -> WriteTally:
        self._server.log.drain()
        self._log.flush()
        return self._log.tally


_LARGEST = 2**63
KEPT_BYTES = 10_000_000
"""Maximum number of bytes of values that one query stores; rows beyond are only counted."""


class RowCollector:
    """Collects rows one by one: stores the first, counts all."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0
        self._count = 0

    def add(self, row: Iterable[Any]) -> None:
        self._count += 1
        if len(self._rows) < self._keep and self._bytes < KEPT_BYTES:
            values = tuple(map(to_json, row))
            self._bytes += sum(map(measure, values))
            self._rows.append(values)

    def build_rows(self, columns: Iterable[str]) -> Rows:
        return Rows(tuple(columns), tuple(self._rows), self._count)


def to_json(value: Any) -> Any:
    """Return a value as JSON.

    Dates become ISO text, decimals numbers if exact, bytes text or hex; any other value becomes its own text.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -_LARGEST <= value < _LARGEST else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return _convert_decimal(value)
    if isinstance(value, date | day_time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "\\x" + data.hex()
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    return str(value)


def _convert_decimal(value: Decimal) -> int | float | str:
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value() and abs(value) < _LARGEST:
        return int(value)
    number = float(value)
    return number if math.isfinite(number) and Decimal(repr(number)) == value else str(value)


def measure(value: Any) -> int:
    """Return the approximate size of a value in bytes."""
    if isinstance(value, dict):
        return sum(len(key) + measure(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(map(measure, value))
    return len(value) if isinstance(value, str) else 8
