"""The agent's writes in PostgreSQL, from the statement log and the row counters.

The log shows the statements of `log_statement=mod`, before they run. The counters count every inserted, updated or
deleted row, also those of functions, triggers and cascades, and of transactions that were rolled back. Comparing the
catalog before and after shows the tables that a function truncated or changed.

The audit cannot tell which row changed, how large a TRUNCATE was, or whether a schema change was rolled back or undone
by a function. It ignores temporary tables.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from holdfast.errors import QueryFailed
from holdfast.sqltext.lexer import format_name, quote_part
from holdfast.sqltext.script import split_statements
from holdfast.sqltext.writes import Write, find_writes
from holdfast.world.services.log import AgentSession, StatementLog
from holdfast.world.services.postgres.session import PgSession, fetch_results
from holdfast.world.services.write_tally import Counters, Tables, TableShape, find_remade, subtract_counts

if TYPE_CHECKING:
    from psycopg import AsyncConnection

TABLES = """
SELECT current_database(), n.nspname, c.relname, rn.nspname, r.relname, c.oid::bigint, c.relfilenode::bigint,
       pg_relation_size(c.oid) = 0,
       (SELECT md5(string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull, ','
                              ORDER BY a.attnum))
        FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_class r ON r.oid = pg_partition_root(c.oid) AND r.oid <> c.oid
LEFT JOIN pg_namespace rn ON rn.oid = r.relnamespace
WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""
"""Temporary tables are excluded, too: their schemas begin with pg_."""
AUDITED = (
    "writes are known from the statement log, row counters and the catalog (rows of rolled-back transactions count, as "
    "does VACUUM FULL; temporary tables, and other objects than tables that a function makes, are not seen), so its "
    "user is not a superuser while the agent runs"
)
SETTLE_S = 1.0
"""Seconds for the agent's sessions to end on their own after the agent."""
FLUSH_S = 0.5
"""Seconds for the counts of an ended session to arrive if its end is not visible."""
_POLL_S = 0.002
PREFIX = "@%n %p "
"""The prefix of every log entry: seconds since 1970 and the session. Continuation lines begin with a tab."""
_ENTRY = re.compile(
    rb"@(\d+\.\d+) (?P<session>\d+) (LOG|ERROR|FATAL|PANIC):  (?:(?:statement|execute [^\n]*?): )?(.*)", re.DOTALL
)
_STATEMENT = re.compile(rb"@\d+\.\d+ \d+ LOG:  (?:statement|execute )")
_COUNTS = """
SELECT current_database(), coalesce(n.nspname, s.schemaname), coalesce(c.relname, s.relname),
       sum(s.n_tup_ins)::bigint, sum(s.n_tup_upd)::bigint, sum(s.n_tup_del)::bigint
FROM pg_stat_user_tables s
LEFT JOIN pg_class c ON c.oid = pg_partition_root(s.relid)
LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE s.schemaname NOT LIKE 'pg\\_temp%' GROUP BY 1, 2, 3
"""
_OTHER_SESSIONS = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"

_SUMS = """
SELECT d.datname, s.tup_inserted + s.tup_updated + s.tup_deleted
FROM pg_database d JOIN pg_stat_database s ON s.datid = d.oid WHERE d.datallowconn AND NOT d.datistemplate
"""


def list_tables(rows: Iterable[tuple[Any, ...]], name: Callable[[str, str, str], str]) -> Tables:
    """Return a database's tables from the rows of TABLES; `name` takes database, schema and table."""
    shapes: Tables = {}
    for database, schema, table, root_schema, root, oid, file, empty, columns in rows:
        of = name(database, root_schema, root) if root else ""
        shapes[name(database, schema, table)] = TableShape(columns or "", (oid, file), of, bool(empty))
    return shapes


class _ServerSnapshot(Struct):
    """The state of a server at one moment, by database."""

    counts: dict[str, tuple[int, int, int]] = {}
    tables: dict[str, Tables] = {}


class PgLog(StatementLog):
    """Reads PostgreSQL's log."""

    entry = _ENTRY
    continuation = re.compile(rb"\t(?P<more>.*)", re.DOTALL)

    def __init__(self) -> None:
        super().__init__()
        self.default = "public"
        """The schema whose tables are named without it."""

    def read_entry(self, session: AgentSession, entry: re.Match[bytes]) -> None:
        if entry[3] != b"LOG":  # the session's last statement failed
            for write in session.last:
                self.tally.drop(write)
            session.last.clear()
        elif _STATEMENT.match(entry[0]):
            self._read_statement(session, float(entry[1]), entry[4].decode("utf-8", "replace"))

    def _read_statement(self, session: AgentSession, ts: float, text: str) -> None:
        session.last.clear()
        for statement in split_statements(text, "postgres"):
            for write in find_writes(statement, "postgres"):
                if write.temporary:
                    session.temporary.add(write.table)
                elif write.table not in session.temporary:
                    table = write.table.removeprefix(f"{self.default}.")
                    short = Write(write.op, table, counted=write.counted)
                    session.last.append(short)
                    self.tally.add(short, ts)


class PgCounters:
    """The row counters and tables of every database of a server, since the snapshot."""

    def __init__(self, own_session: PgSession, database: str, *, shared: bool = False) -> None:
        self._own_session = own_session
        self._database = database
        self._shared = shared
        """Whether others use the server, too.

        Then sessions are not waited for, and only its one database is examined.
        """
        self.default = "public"
        """The schema of unqualified names when the agent starts."""
        self._marked = _ServerSnapshot()
        self._sums: dict[str, int] = {}
        """Rows changed so far in each database, catalogs included: a database with the same sum is not examined."""

    async def mark(self, first: Sequence[str] = ()) -> None:
        """Take the snapshot after `first` has run in the same session."""
        async with self._own_session.open_session() as session:
            self.default = quote_part(await self._own_session.pin(session, first))
            self._marked = await self._read(session, end=False)

    async def read_changes(self) -> Counters:
        try:
            async with self._own_session.open_session() as session:
                now = await self._read(session, end=True)
            # Nothing is left to count, and the log has the statement. template1 accepts a session at any time.
        except QueryFailed:  # the agent has dropped the database
            async with self._own_session.open_session(dbname="template1") as session:
                await _wait_alone(session, end=True)
                now = _ServerSnapshot()
        changed = subtract_counts(("insert", "update", "delete"), now.counts, self._marked.counts)
        operations: dict[str, str] = {}
        for database, shapes in now.tables.items():  # a database that was not examined has not changed
            operations |= find_remade(self._marked.tables.get(database, {}), shapes)
        tables = frozenset({*now.counts, *self._marked.counts})
        return Counters(changed, tables, remade=operations, default=self.default)

    async def _read(self, session: AsyncConnection[Any], *, end: bool) -> _ServerSnapshot:
        # Row counters reach the statistics when the session that changed the rows ends or is told to flush. So Holdfast
        # waits until no other session is left, and ends those of the agent. On a shared server it can only wait.
        snapshot = _ServerSnapshot()
        if self._shared:
            await asyncio.sleep(FLUSH_S if end else 0)
            await self._read_database(session, self._database, snapshot)
            return snapshot
        await _wait_alone(session, end=end)
        sums = await self._read_database(session, self._database, snapshot)
        for database in sums:
            if database != self._database and sums[database] != self._sums.get(database):
                async with self._own_session.open_session(dbname=database) as there:
                    await self._read_database(there, database, snapshot)
        self._sums = sums
        return snapshot

    async def _read_database(
        self, session: AsyncConnection[Any], database: str, snapshot: _ServerSnapshot
    ) -> dict[str, int]:
        """Examine one database, and read the sums of all."""
        counts, shapes, sums = await fetch_results(session, [_COUNTS, TABLES, _SUMS])
        snapshot.counts |= {self._format_table(*row[:3]): (row[3], row[4], row[5]) for row in counts}
        snapshot.tables[database] = list_tables(shapes, self._format_table)
        return dict(sums)

    def _format_table(self, database: str, schema: str, table: str) -> str:
        """Return the table's bare name in the default schema and database, with them otherwise."""
        if database != self._database:
            return format_name(database, schema, table)
        return quote_part(table) if quote_part(schema) == self.default else format_name(schema, table)


async def _wait_alone(session: AsyncConnection[Any], *, end: bool) -> None:
    """Wait until other sessions end, so that their counts are complete; `end` ends them."""
    until = time.monotonic() + SETTLE_S
    while await (await session.execute(f"SELECT 1 {_OTHER_SESSIONS} LIMIT 1")).fetchone():
        if time.monotonic() > until:
            if end:
                await session.execute(f"SELECT pg_terminate_backend(pid, 5000) {_OTHER_SESSIONS}")
            return
        await asyncio.sleep(_POLL_S)
