"""How we reach a PostgreSQL database: queries, fixtures, preparing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from holdfast.errors import HarnessError, QueryFailed
from holdfast.protocols import Rows
from holdfast.world.services.rows import KeptRows
from holdfast.world.services.statements import ScriptStatement, split

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Error

CONNECT_S = 10
LATE_S = 2.0
"""For the server to stop a query at its own timeout; then we stop waiting."""
_CANCELLED = "57014"
_SEARCH_PATH = """
SELECT substr(setting, 13) FROM pg_catalog.pg_db_role_setting s
JOIN pg_catalog.pg_roles r ON r.rolname = %s AND s.setrole = r.oid, unnest(s.setconfig) setting
WHERE s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
AND setting LIKE 'search\\_path=%%' ORDER BY s.setdatabase DESC LIMIT 1
"""
"""What was set for a role alone: SET ROLE does not take it over, as a login would."""


class PgSession:
    """Opens sessions in one database. `role` is who queries and fixtures act as, where that is not who logs in."""

    def __init__(
        self, name: str, login: Mapping[str, str], role: str = "", opened: Callable[[int], None] = lambda pid: None
    ) -> None:
        self.name = name
        self._login: dict[str, Any] = dict(login)
        self._role = role
        self._opened = opened
        self._path = ""
        """Where bare names of tables are looked for; empty: where the server says."""

    @asynccontextmanager
    async def session(self, **login: str) -> AsyncIterator[AsyncConnection[Any]]:
        """A session of its own in autocommit mode; HarnessError if the server cannot be reached.

        QueryFailed if there is no such database: an agent may have dropped it.
        """
        import psycopg

        try:
            session = await psycopg.AsyncConnection.connect(
                autocommit=True, connect_timeout=CONNECT_S, prepare_threshold=None, **{**self._login, **login}
            )
        except psycopg.OperationalError as refused:
            raise _failure(self.name, refused) from refused
        try:
            self._opened(session.info.backend_pid)
            yield session
        finally:
            await session.close()

    async def query(self, sql: str, *, timeout_s: float, keep: int) -> Rows:
        """One statement in a read-only transaction."""
        import psycopg

        try:
            async with asyncio.timeout(timeout_s + LATE_S), self.session() as session:
                await session.set_autocommit(False)
                await session.set_read_only(True)
                await session.execute(f"SET LOCAL statement_timeout = {max(1, round(timeout_s * 1000))}")
                if self._role:
                    await session.execute(f"SET LOCAL ROLE {quoted(self._role)}")
                if self._path:
                    await session.execute(f"SET LOCAL search_path = {self._path}")
                return await _rows(session, sql, keep)
        except psycopg.Error as refused:
            if refused.sqlstate == _CANCELLED:
                raise TimeoutError(f"the query took longer than {timeout_s:g} s") from refused
            raise QueryFailed(said(refused), state=refused.sqlstate or "") from refused

    async def pin(self) -> str:
        """From now on a bare name means what it means to a login now: no agent can put a table of its own before it.

        The schema that it leads to; empty if there is none.
        """
        async with self.session() as session:
            if self._role:
                path = await (await session.execute(_SEARCH_PATH, [self._role])).fetchone()
                if path is not None:
                    await session.execute("SELECT set_config('search_path', %s, false)", path)
                await session.execute(f"SET ROLE {quoted(self._role)}")
            found = await (await session.execute("SELECT unnest(current_schemas(false))")).fetchall()
        self._path = ", ".join(quoted(name) for (name,) in found) or "pg_catalog"
        return str(found[0][0]) if found else ""

    async def execute(self, sql: str) -> None:
        """Statements one after the other, each on its own unless the text opens a transaction."""
        async with self.session() as session:
            if self._role:
                await session.execute(f"SET SESSION AUTHORIZATION {quoted(self._role)}")
            for statement in split(sql, "postgres"):
                await _perform(session, statement)

    async def prepare(self, sql: str) -> None:
        """Lets the server read the statement without running it."""
        from psycopg.pq import ExecStatus

        async with self.session() as session:
            if self._role:
                await session.execute(f"SET ROLE {quoted(self._role)}")
            result = await asyncio.to_thread(session.pgconn.prepare, b"", sql.encode())
            if result.status == ExecStatus.FATAL_ERROR:
                state = result.error_field(67)
                raise QueryFailed(
                    result.error_message.decode("utf-8", "replace").strip(), state=state.decode() if state else ""
                )


async def _rows(session: AsyncConnection[Any], sql: str, keep: int) -> Rows:
    kept = KeptRows(keep)
    async with session.cursor() as cursor:
        async for row in cursor.stream(sql.encode()):
            kept.add(row)
        columns = [column.name for column in cursor.description or ()]
    return kept.rows(columns)


async def _perform(session: AsyncConnection[Any], statement: ScriptStatement) -> None:
    import psycopg

    try:
        if statement.data is None:
            await session.execute(statement.text.encode())
            return
        async with session.cursor() as cursor, cursor.copy(statement.text.encode()) as copy:
            await copy.write(statement.data)
    except psycopg.Error as refused:
        line = statement.line + _line_in(statement, refused)
        raise QueryFailed(
            f"line {line}: {said(refused)}, in: {_short(statement.text)}", state=refused.sqlstate or ""
        ) from refused


def _line_in(statement: ScriptStatement, refused: Error) -> int:
    """How many lines into the statement the server found the fault."""
    place = refused.diag.statement_position
    return statement.text.count("\n", 0, int(place) - 1) if place else 0


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 120 else words[:119] + "…"


def said(refused: Error) -> str:
    """What the server said, with its hint."""
    diag = refused.diag
    parts = [diag.message_primary or str(refused).strip(), diag.message_detail, diag.message_hint]
    return ". ".join(part.rstrip(".") for part in parts if part)


def _failure(name: str, refused: Error) -> HarnessError | QueryFailed:
    """Why no session could be opened."""
    text = " ".join(str(refused).split())
    if "does not exist" in text:
        return QueryFailed(f"service {name}: {text}", state="3D000")
    if "authentication failed" in text or "no password supplied" in text:
        return HarnessError(
            f"service {name}: the database refuses the login: {text}. Does the password in the spec fit?"
        )
    return HarnessError(f"service {name}: the database cannot be reached: {text}. Is the server running, and are host and port right?")  # noqa: E501  # fmt: skip


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
