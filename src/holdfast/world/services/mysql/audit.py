"""The agent's writes in MariaDB or MySQL, from the general log and the row counters.

The log shows every statement before it runs. The counters count every changed row, also those of procedures, triggers
and cascades, and of transactions that were rolled back. Comparing the list of tables before and after shows those that
a procedure truncated or changed.

The audit cannot tell which row changed, how large a TRUNCATE was, or whether a schema change failed or was undone by a
procedure. It ignores temporary tables. MariaDB counts changes of any kind together.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from holdfast.errors import ServiceFailed
from holdfast.sqltext.lexer import TokenCursor, format_name, quote_part
from holdfast.sqltext.writes import Write, find_writes, format_plain_name
from holdfast.world.services.log import AgentSession, StatementLog
from holdfast.world.services.mysql.session import MySqlSession
from holdfast.world.services.write_tally import Counters, Tables, TableShape, find_remade, subtract_counts

SYSTEM = "('mysql', 'information_schema', 'performance_schema', 'sys')"
_SHAPES = f"SELECT table_schema, table_name, create_time, table_rows = 0, engine = 'InnoDB' FROM information_schema.tables WHERE engine IS NOT NULL AND table_schema NOT IN {SYSTEM}"  # noqa: E501, S608  # fmt: skip
_COLUMNS = f"SELECT table_schema, table_name, column_name, column_type, is_nullable FROM information_schema.columns WHERE table_schema NOT IN {SYSTEM} ORDER BY table_schema, table_name, ordinal_position"  # noqa: E501, S608  # fmt: skip
_NUMBERS = {
    True: "SELECT name, table_id FROM information_schema.innodb_sys_tables",
    False: "SELECT name, table_id FROM information_schema.innodb_tables",
}
"""InnoDB gives a truncated table a new number; the query for it, in MariaDB and MySQL."""
_NO_PROCESS = 1227
"""The error of a user who may not see other users' processes: the numbers are then unavailable."""
_PART = re.compile("#p#", re.IGNORECASE)
_CHAR = re.compile("@([0-9a-f]{4})")

_Key = tuple[str, str]
AUDITED = (
    "writes are known from the general log, row counters and the list of tables (rows of rolled-back transactions "
    "count, as does OPTIMIZE TABLE; temporary tables, and other objects than tables that a procedure makes, are "
    "not seen), so root has no SUPER, no SHUTDOWN, no FILE while the agent runs"
)
SETTLE_S = 1.0
"""Seconds for the agent's sessions to end on their own after the agent."""
_ENTRY = re.compile(
    rb"(?:\d{6} [ \d]\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.]+Z?)?\t+ *(?P<session>\d+) "
    rb"(Connect|Query|Execute|Prepare|Init DB|Quit|Close stmt|Reset stmt|Ping|Statistics|Field List|Change user"
    rb"|Change user with db|Kill|Refresh|Fetch|Long Data|Set option|Shutdown|Debug|Daemon|Bulk_execute)\t?(.*)",
    re.DOTALL,
)
_ON = re.compile(r" on (\S*)(?: using \S+)?$")
_MARIADB = f"SELECT table_schema, table_name, rows_changed FROM information_schema.table_statistics WHERE table_schema NOT IN {SYSTEM}"  # noqa: E501, S608  # fmt: skip
_MYSQL = f"SELECT object_schema, object_name, count_insert, count_update, count_delete FROM performance_schema.table_io_waits_summary_by_table WHERE object_schema NOT IN {SYSTEM}"  # noqa: E501, S608  # fmt: skip
_TABLES = f"SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT IN {SYSTEM}"  # noqa: S608
_OTHER_SESSIONS = (
    "SELECT id FROM information_schema.processlist"
    " WHERE id <> connection_id() AND command NOT IN ('Daemon', 'Killed')"
    " AND user NOT IN ('system user', 'event_scheduler')"
)


class MyLog(StatementLog):
    """Reads the general log of MariaDB or MySQL.

    A statement of several lines could imitate a log entry. It can only add to what its author is seen to do: Holdfast's
    own sessions are known by their numbers, and the row counters have the last word.
    """

    entry = _ENTRY
    continuation = re.compile(rb"(?!%b)(?P<more>.*)" % _ENTRY.pattern, re.DOTALL)

    def __init__(self, database: str) -> None:
        super().__init__()
        self._database = database

    def read_entry(self, session: AgentSession, entry: re.Match[bytes]) -> None:
        text = entry[3].decode("utf-8", "replace")
        if entry[2] in (b"Query", b"Execute", b"Bulk_execute"):
            self._read_statement(session, text)
        elif entry[2] == b"Connect":
            on = _ON.search(text)
            session.database = on[1] if on else ""
        elif entry[2] == b"Init DB":
            session.database = text.strip()

    def _read_statement(self, session: AgentSession, text: str) -> None:
        cursor = TokenCursor(text, "mysql")
        if cursor.skip("use"):
            session.database = format_plain_name(cursor.read_name())
        elif cursor.skip("flush") and any(word.endswith("statistics") for word in cursor.read_words()):
            self.tally.add(Write("reset counters", "*", counted=False), time.time())
        for write in find_writes(text, "mysql"):
            name = self._format_table(session, write.table)
            if write.temporary:
                session.temporary.add(name)
            elif name not in session.temporary:
                self.tally.add(Write(write.op, name, counted=write.counted), time.time())

    def _format_table(self, session: AgentSession, table: str) -> str:
        """Return the table's bare name if it is in the service's database, otherwise `database.table`."""
        if "." not in table and " " not in table and session.database not in ("", self._database):
            return f"{session.database}.{table}"
        return table.removeprefix(f"{self._database}.") if self._database else table


class MyCounters:
    """The row counters of all databases of a server, since the snapshot."""

    def __init__(self, own_session: MySqlSession, database: str, *, shared: bool = False) -> None:
        self._own_session = own_session
        self._database = database
        self._shared = shared
        """Whether others use the server, too: then sessions are not waited for."""
        self._mariadb = True
        self._marked: dict[str, tuple[int, ...]] = {}
        self._made: Tables = {}

    async def mark(self) -> None:
        self._marked, _, self._made = await asyncio.to_thread(self._read, end=False)

    async def read_changes(self) -> Counters:
        now, names, snapshot = await asyncio.to_thread(self._read, end=True)
        ops = ("write",) if self._mariadb else ("insert", "update", "delete")
        changed = subtract_counts(ops, now, self._marked)
        return Counters(
            changed,
            names | frozenset(now) | frozenset(self._made),
            by_operation=not self._mariadb,
            remade=find_remade(self._made, mark_emptied(self._made, snapshot, changed)),
            default=quote_part(self._database),
        )

    def _read(self, *, end: bool) -> tuple[dict[str, tuple[int, ...]], frozenset[str], Tables]:
        with self._own_session.open_session(database=None) as session, session.cursor() as cursor:
            if not self._shared:
                _wait_alone(cursor, end=end)
            self._mariadb = "MariaDB" in session.get_server_info()
            cursor.execute(_MARIADB if self._mariadb else _MYSQL)
            counts = {self._format_table(row[0], row[1]): tuple(map(int, row[2:])) for row in cursor.fetchall()}
            cursor.execute(_TABLES)
            names = frozenset(self._format_table(*row) for row in cursor.fetchall())
            return counts, names, list_tables(cursor, self._format_table, mariadb=self._mariadb)

    def _format_table(self, database: str, table: str) -> str:
        return quote_part(table) if database == self._database else format_name(database, table)


def _wait_alone(cursor: Any, *, end: bool) -> None:
    """Wait until other sessions end, so that their counts are complete; `end` ends them."""
    import pymysql

    # MariaDB adds the rows of a session to the table's count only when the session ends.
    until = time.monotonic() + SETTLE_S
    while cursor.execute(_OTHER_SESSIONS):
        numbers = [row[0] for row in cursor.fetchall()]
        if time.monotonic() > until + SETTLE_S:
            raise ServiceFailed("sessions of the agent could not be ended")
        if time.monotonic() > until:
            if not end:
                return
            for number in numbers:
                with suppress(pymysql.OperationalError):  # it has ended already
                    cursor.execute(f"KILL {int(number)}")
        time.sleep(0.005)


def list_tables(cursor: Any, name: Callable[[str, str], str], *, mariadb: bool) -> Tables:
    """Return every table that the session sees; `name` takes database and table."""
    numbers, columns = _read_numbers(cursor, mariadb=mariadb), _read_columns(cursor)
    cursor.execute(_SHAPES)
    shapes: Tables = {}
    for database, table, made_at, empty, innodb in cursor.fetchall():
        key = (str(database), str(table))
        file: tuple[object, ...] = tuple(numbers.get(key, ())) if innodb else (str(made_at),)
        shapes[name(*key)] = TableShape(columns.get(key, ""), file, empty=bool(empty), dated=not innodb)
    return shapes


def mark_emptied(
    before: Mapping[str, TableShape], after: Mapping[str, TableShape], changed: Mapping[str, object]
) -> Tables:
    """Return the tables after the trial.

    A table truncated in the second in which it was created gets a new file, too.
    """
    return {
        name: replace(now, file=(*now.file, "emptied"))
        # Engines without numbers know a file only by the second of its creation. A table that was not empty, is empty
        # now and had no row deleted was truncated within that second.
        if now.dated and now.empty and name not in changed and name in before and not before[name].empty
        else now
        for name, now in after.items()
    }


def _read_numbers(cursor: Any, *, mariadb: bool) -> dict[_Key, list[int]]:
    """Return the numbers of each table's partitions, in order."""
    import pymysql

    try:
        cursor.execute(_NUMBERS[mariadb])
    except pymysql.Error as refused:
        if refused.args[0] != _NO_PROCESS:
            raise
        return {}
    numbers: dict[_Key, list[int]] = {}
    for path, number in sorted(cursor.fetchall()):
        database, _, table = path.partition("/")
        numbers.setdefault((_decode_name(database), _decode_name(_PART.split(table)[0])), []).append(number)
    return numbers


def _decode_name(name: str) -> str:
    """Decode a name from InnoDB's file name encoding."""
    return _CHAR.sub(lambda match: chr(int(match[1], 16)), name)


def _read_columns(cursor: Any) -> dict[_Key, str]:
    """Return a fingerprint of each table's columns."""
    cursor.execute(_COLUMNS)
    marks: dict[_Key, Any] = {}
    for database, table, *column in cursor.fetchall():
        marks.setdefault((str(database), str(table)), blake2b(digest_size=8)).update(repr(column).encode())
    return {key: mark.hexdigest() for key, mark in marks.items()}
