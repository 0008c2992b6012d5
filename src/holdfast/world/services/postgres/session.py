"""Holdfast's access to a PostgreSQL database: queries, fixtures, preparation. Each use opens its own session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from holdfast.errors import QueryFailed
from holdfast.protocols.service import Rows
from holdfast.sqltext.lexer import quote_name
from holdfast.sqltext.script import ScriptStatement, split
from holdfast.world.services.sql_service import RowCollector, make_connect_error, make_lost_error, make_statement_error

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Error

CONNECT_S = 10
EXTRA_S = 2.0
"""Time for the server to stop a query at its own timeout; after that Holdfast stops waiting."""
_CANCELLED = "57014"
_CONNECTION_LOST = {None, "57P01", "57P02", "57P03"}
"""The server is gone without a word, or says that it shuts down, has crashed, or is not ready."""
_SEARCH_PATH = """
SELECT set_config('search_path', substr(setting, 13), true) FROM (
SELECT setting FROM pg_catalog.pg_db_role_setting s
JOIN pg_catalog.pg_roles r ON r.rolname = %s AND s.setrole = r.oid, unnest(s.setconfig) setting
WHERE s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
AND setting LIKE 'search\\_path=%' ORDER BY s.setdatabase DESC LIMIT 1) of_role
"""
"""Settings of a role alone: unlike a login, SET ROLE does not apply them."""


class PgSession:
    """Opens sessions in one database. `role` executes queries and fixtures, if it differs from the login."""

    def __init__(
        self, name: str, login: Mapping[str, str], role: str = "", opened: Callable[[int], None] = lambda pid: None
    ) -> None:
        """`opened` receives the number of every session."""
        self.name = name
        self._login: dict[str, Any] = dict(login)
        self._role = role
        self._opened = opened
        self._path = ""
        """The search path for unqualified table names; empty: the server's own."""

    @asynccontextmanager
    async def open_session(self, **login: str) -> AsyncIterator[AsyncConnection[Any]]:
        """Open a session in autocommit mode; raise HarnessError if the server cannot be reached.

        Raises QueryFailed if the database does not exist: an agent may have dropped it.
        """
        import psycopg

        try:
            session = await psycopg.AsyncConnection.connect(
                autocommit=True, connect_timeout=CONNECT_S, prepare_threshold=None, **{**self._login, **login}
            )
        except psycopg.OperationalError as refused:
            text = " ".join(str(refused).split())
            missing = "3D000" if "does not exist" in text else ""
            denied = "authentication failed" in text or "no password supplied" in text
            raise make_connect_error(self.name, text, missing=missing, denied=denied) from refused
        self._opened(session.info.backend_pid)
        try:
            yield session
        finally:
            await session.close()

    async def query(self, sql: str, *, timeout_s: float, keep: int) -> Rows:
        """Run one statement in a read-only transaction."""
        import psycopg

        begin = ["BEGIN READ ONLY", f"SET LOCAL statement_timeout = {max(1, round(timeout_s * 1000))}"]
        begin += [f"SET LOCAL ROLE {quote_name(self._role)}"] if self._role else []
        begin += [f"SET LOCAL search_path = {self._path}"] if self._path else []
        began = time.monotonic()
        try:
            async with asyncio.timeout(timeout_s + EXTRA_S), self.open_session() as session:
                await session.execute("; ".join(begin))
                return await _fetch_rows(session, sql, keep)
        except psycopg.Error as refused:
            if refused.sqlstate == _CANCELLED:
                raise TimeoutError(f"the query took longer than {timeout_s:g} s") from refused
            if isinstance(refused, psycopg.OperationalError) and refused.sqlstate in _CONNECTION_LOST:
                text = " ".join(format_server_error(refused).split())
                raise make_lost_error(self.name, time.monotonic() - began, text) from refused
            raise QueryFailed(format_server_error(refused), state=refused.sqlstate or "") from refused

    async def pin(self, session: AsyncConnection[Any], first: Sequence[str] = ()) -> str:
        """Fix the meaning of unqualified names to that of a login now: an agent cannot shadow a table later.

        Returns the schema that they resolve to; empty if there is none.
        """
        from psycopg.sql import Literal

        statements = [*first]
        if self._role:
            statements.append(_SEARCH_PATH.replace("%s", Literal(self._role).as_string(session)))
            statements.append(f"SET LOCAL ROLE {quote_name(self._role)}")
        *_, schemas = await fetch_results(session, [*statements, "SELECT unnest(current_schemas(false))"])
        self._path = ", ".join(quote_name(name) for (name,) in schemas) or "pg_catalog"
        return str(schemas[0][0]) if schemas else ""

    async def execute(self, sql: str) -> None:
        """Execute statements one after the other, each on its own unless the text opens a transaction."""
        async with self.open_session() as session:
            if self._role:
                await session.execute(f"SET SESSION AUTHORIZATION {quote_name(self._role)}")
            for statement in split(sql, "postgres"):
                await _perform(session, statement)

    async def prepare(self, sql: str) -> None:
        """Let the server parse the statement without running it."""
        from psycopg.pq import ExecStatus

        async with self.open_session() as session:
            if self._role:
                await session.execute(f"SET ROLE {quote_name(self._role)}")
            result = await asyncio.to_thread(session.pgconn.prepare, b"", sql.encode())
            if result.status == ExecStatus.FATAL_ERROR:
                state = result.error_field(67)
                raise QueryFailed(
                    result.error_message.decode("utf-8", "replace").strip(), state=state.decode() if state else ""
                )


async def fetch_results(session: AsyncConnection[Any], statements: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    """Return the result of each statement; all are sent together, as one transaction."""
    cursor = await session.execute("; ".join(statements).encode())
    rows = []
    while True:
        rows.append(await cursor.fetchall() if cursor.description is not None else [])
        if not cursor.nextset():
            return rows


async def _fetch_rows(session: AsyncConnection[Any], sql: str, keep: int) -> Rows:
    rows = RowCollector(keep)
    async with session.cursor() as cursor:
        async for row in cursor.stream(sql.encode()):
            rows.add(row)
        columns = [column.name for column in cursor.description or ()]
    return rows.build_rows(columns)


async def _perform(session: AsyncConnection[Any], statement: ScriptStatement) -> None:
    import psycopg

    try:
        if statement.data is None:
            await session.execute(statement.text.encode())
            return
        async with session.cursor() as cursor, cursor.copy(statement.text.encode()) as copy:
            await copy.write(statement.data)
    except psycopg.Error as refused:
        place = refused.diag.statement_position
        below = statement.text.count("\n", 0, int(place) - 1) if place else 0
        message, state = format_server_error(refused), refused.sqlstate or ""
        raise make_statement_error(statement, message, state, below=below) from refused


def format_server_error(refused: Error) -> str:
    """Return the server's message, with its hint."""
    diag = refused.diag
    parts = [diag.message_primary or str(refused).strip(), diag.message_detail, diag.message_hint]
    return ". ".join(part.rstrip(".") for part in parts if part)


def hash_password(session: AsyncConnection[Any], user: str, password: str) -> str:
    """Return the stored form of a password, as the client library makes it: no statement then contains the password."""
    return session.pgconn.encrypt_password(password.encode(), user.encode(), b"scram-sha-256").decode()
