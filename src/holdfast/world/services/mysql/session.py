"""Holdfast's access to a MariaDB or MySQL database: queries, fixtures and preparation.

PyMySQL blocks, so it runs in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast.errors import QueryFailed
from holdfast.protocols.service import Rows
from holdfast.sqltext.script import ScriptStatement, split
from holdfast.world.services.sql_service import RowCollector, make_connect_error, make_lost_error, make_statement_error

CONNECT_S = 10
EXTRA_S = 2.0
"""Seconds for the server to stop a query at its own timeout; after that Holdfast stops waiting."""
_TIMED_OUT = {1969, 3024}
"""Error codes of a statement that took too long, in MariaDB and MySQL."""
_CONNECTION_LOST = {2006, 2013}
"""Error codes of a lost connection, which PyMySQL also uses when Holdfast stops waiting."""
_DENIED = {1044, 1045, 1698}
_NO_DATABASE, _UNKNOWN_DATABASE = 1046, 1049


class MySqlSession:
    """Opens sessions in one database."""

    def __init__(
        self, name: str, login: Mapping[str, Any], opened: Callable[[int], None] = lambda number: None
    ) -> None:
        self.name = name
        self._login = dict(login)
        self._opened = opened

    @contextmanager
    def open_session(self, **login: Any) -> Iterator[Any]:
        """Open a separate session in autocommit mode; raise HarnessError if the server cannot be reached.

        Raises QueryFailed if the database does not exist: an agent may have dropped it.
        """
        import pymysql

        try:
            session = pymysql.connect(
                charset="utf8mb4", connect_timeout=CONNECT_S, autocommit=True, **{**self._login, **login}
            )
        except (pymysql.Error, OSError) as refused:
            code, text = _get_code(refused), format_server_error(refused)
            missing = str(code) if code == _UNKNOWN_DATABASE else ""
            raise make_connect_error(self.name, text, missing=missing, denied=code in _DENIED) from refused
        try:
            self._opened(session.thread_id())
            yield session
        finally:
            session.close()

    async def query(self, sql: str, *, timeout_s: float, keep: int) -> Rows:
        """Run one statement in a read-only transaction."""
        return await asyncio.to_thread(self._query, sql, timeout_s, keep)

    async def execute(self, sql: str, **login: Any) -> None:
        """Run statements one after the other."""
        await asyncio.to_thread(self._execute, sql, login)

    async def prepare(self, sql: str) -> None:
        """Let the server parse the statement without running it."""
        await asyncio.to_thread(self._prepare, sql)

    def _query(self, sql: str, timeout_s: float, keep: int) -> Rows:
        import pymysql

        began = time.monotonic()
        try:
            with self.open_session(read_timeout=timeout_s + EXTRA_S) as session:
                # The server's own timeout has another name and unit in MariaDB and MySQL.
                mariadb = "MariaDB" in session.get_server_info()
                limit = (
                    f"statement_time = {timeout_s:.3f}" if mariadb else f"execution_time = {round(timeout_s * 1000)}"
                )
                with session.cursor(pymysql.cursors.SSCursor) as cursor:
                    cursor.execute(f"SET SESSION max_{limit}")
                    cursor.execute("SET SESSION TRANSACTION READ ONLY")  # also those that a routine begins
                    cursor.execute("START TRANSACTION READ ONLY")
                    cursor.execute(sql)
                    rows = RowCollector(keep)
                    for row in cursor.fetchall_unbuffered():
                        rows.add(row)
                    return rows.build_rows(column[0] for column in cursor.description or ())
        except pymysql.Error as refused:
            took_s = time.monotonic() - began
            if _get_code(refused) in _TIMED_OUT or (_get_code(refused) in _CONNECTION_LOST and took_s >= timeout_s):
                raise TimeoutError(f"the query took longer than {timeout_s:g} s") from refused
            if _get_code(refused) in _CONNECTION_LOST:
                raise make_lost_error(self.name, took_s, format_server_error(refused)) from refused
            raise QueryFailed(format_server_error(refused), state=_get_state(refused)) from refused

    def _execute(self, sql: str, login: Mapping[str, Any]) -> None:
        with self.open_session(**login) as session, session.cursor() as cursor:
            for statement in split(sql, "mysql"):
                _perform(cursor, statement)

    def _prepare(self, sql: str) -> None:
        import pymysql

        with self.open_session() as session, session.cursor() as cursor:
            try:
                cursor.execute("PREPARE holdfast FROM %s", (sql,))
            except pymysql.Error as refused:
                raise QueryFailed(format_server_error(refused), state=_get_state(refused)) from refused


def _perform(cursor: Any, statement: ScriptStatement) -> None:
    import pymysql

    try:
        cursor.execute(statement.text)
    except pymysql.Error as refused:
        raise make_statement_error(statement, format_server_error(refused), _get_state(refused)) from refused


def _get_code(refused: BaseException) -> int:
    return refused.args[0] if refused.args and isinstance(refused.args[0], int) else 0


def format_server_error(refused: BaseException) -> str:
    """Return the server's message."""
    text = str(refused.args[1]) if len(refused.args) > 1 else str(refused)
    if _get_code(refused) != _NO_DATABASE:
        return text
    return f"{text}: name one in the service's env (MYSQL_DATABASE: app), or write app.table"


def _get_state(refused: BaseException) -> str:
    return str(getattr(refused, "sqlstate", None) or _get_code(refused) or "")
