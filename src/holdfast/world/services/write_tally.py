"""Adds up the writes of one database by table and operation.

Comparing the tables before and after shows changes that neither statements nor row counters do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from holdfast.model.world import AuditEvent
from holdfast.sqltext.lexer import count_qualifiers
from holdfast.sqltext.writes import Write


class TableShape(Struct, frozen=True):
    """One table, or a partition of one."""

    columns: str
    """A fingerprint of its columns."""
    file: tuple[object, ...]
    """Changes when its rows get a new file: a TRUNCATE, or a rewrite of the table."""
    of: str = ""
    """The table that it is a partition of; empty if it is a table itself."""
    empty: bool = False
    """Whether it has no rows, as far as its server knows without counting."""
    dated: bool = False
    """Its file is known only by the second of its creation; but the server counts its rows."""


Tables = dict[str, TableShape]


def find_remade(before: Mapping[str, TableShape], after: Mapping[str, TableShape]) -> dict[str, str]:
    """Return the tables that were remade, and by which operation."""
    operations: dict[str, str] = {}
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        # Columns before files: an ALTER may rewrite the file as well, and is the better name for what happened.
        if was is None or now is None:
            operations[name] = "create" if was is None else "drop"
        elif was.columns != now.columns:
            operations[now.of or name] = "alter"
        elif was.file != now.file:
            operations.setdefault(now.of or name, "truncate" if now.empty else "rewrite")
    return operations


ENTRY_LIMIT = 10_000
"""Maximum number of distinct tables and operations; the rest is one entry."""
OVERFLOW = Write("write", "*", counted=False)


class WriteEntry(Struct):
    """One table and operation, as written to the audit log."""

    ts: float
    statements: int
    counted: bool


class WriteTally:
    """Statements in the log since the snapshot."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], WriteEntry] = {}

    def clear(self) -> None:
        self._entries.clear()

    def add(self, write: Write, ts: float) -> None:
        if (write.table, write.op) not in self._entries and len(self._entries) >= ENTRY_LIMIT:
            write = OVERFLOW
        entry = self._entries.setdefault((write.table, write.op), WriteEntry(ts, 0, write.counted))
        entry.statements += 1
        entry.counted = entry.counted and write.counted

    def drop(self, write: Write) -> None:
        """Remove a statement that failed."""
        entry = self._entries.get((write.table, write.op))
        if entry is not None:
            entry.statements -= 1

    def list_entries(self) -> Iterator[tuple[str, str, WriteEntry]]:
        for (table, op), entry in self._entries.items():
            if entry.statements > 0:
                yield table, op, entry


class Counters(Struct, frozen=True):
    """Rows that changed since the snapshot, and all tables."""

    changed: dict[str, dict[str, int]]
    """Counts by table and operation."""
    tables: frozenset[str]
    """Tables by full name: a bare name in a statement means the only table of that name."""
    by_operation: bool = True
    """If False, the server only counts changes, and all are counted as `write`."""
    remade: dict[str, str] = {}
    """Tables that were created, dropped, altered or got a new file, by operation, whatever the log says."""
    default: str = ""
    """The schema of unqualified names when the agent starts."""


def subtract_counts(
    ops: Sequence[str], now: Mapping[str, Sequence[int]], before: Mapping[str, Sequence[int]]
) -> dict[str, dict[str, int]]:
    """Return the rows that changed since the snapshot, by table and operation, from the counters of both moments."""
    nothing = (0,) * len(ops)
    return {
        table: {op: n - m for op, n, m in zip(ops, counts, before.get(table, nothing), strict=True)}
        for table, counts in now.items()
        if counts != before.get(table, nothing)
    }


def build_events(service: str, tally: WriteTally, counters: Counters, now: float) -> list[AuditEvent]:
    """Merge log and row counters into one list, in order of time. A statement that changed no row is not a write."""
    by_last_part: dict[str, list[str]] = {}
    for table in counters.tables:
        by_last_part.setdefault(table.rpartition(".")[2], []).append(table)
    logged: dict[tuple[str, str], WriteEntry] = {}
    for table, op, entry in tally.list_entries():
        # A statement may name a table without its schema. If only one table has that name, it is meant; otherwise the
        # bare name stays.
        namesakes = () if table in counters.tables or "." in table else by_last_part.get(table, ())
        full_name = namesakes[0] if len(namesakes) == 1 else table
        total = logged.setdefault((full_name, op), WriteEntry(entry.ts, 0, True))
        total.ts = min(total.ts, entry.ts)
        total.statements += entry.statements
        total.counted = total.counted and entry.counted
    audit_events = [
        _make_event(service, key, entry, _count_rows(key, logged, counters)) for key, entry in logged.items()
    ]
    audit_events = [event for event in audit_events if event.details["rows"] != 0]
    # Rows without a statement were changed inside the server: they have no time of their own, so they get the
    # time of this look.
    for table, op, rows in _list_unlogged(logged, counters):
        audit_events.append(_make_event(service, (table, op), WriteEntry(now, 0, True), rows))
    for event in audit_events:
        table = event.details["table"]
        if counters.default and table not in ("", OVERFLOW.table) and " " not in table and not count_qualifiers(table):
            event.details["schema"] = counters.default
    audit_events.sort(key=lambda event: event.ts)
    return [AuditEvent(event.ts, n, event.type, event.details) for n, event in enumerate(audit_events, 1)]


def _list_unlogged(
    logged: Mapping[tuple[str, str], WriteEntry], counters: Counters
) -> Iterator[tuple[str, str, int | None]]:
    """Yield the changes that no logged statement explains: made by a function, a trigger or a cascade."""
    for table, changed in counters.changed.items():
        for op, rows in changed.items():
            if rows > 0 and not _is_explained(table, op, logged):
                yield table, op, rows
    stated = {table for (table, _), entry in logged.items() if not entry.counted}
    for table, op in counters.remade.items():
        if table not in stated:
            yield table, op, None


_COUNTED = ("insert", "update", "delete")


def _count_rows(key: tuple[str, str], logged: Mapping[tuple[str, str], WriteEntry], counters: Counters) -> int | None:
    """Return the number of rows, if the counters have it; 0 if the statement changed nothing."""
    table, op = key
    if not logged[key].counted:
        return None
    changed = counters.changed.get(table, {})
    # If the server counts all operations together, the number belongs to a statement only if the log has no other one
    # on that table.
    if counters.by_operation and op in _COUNTED:
        return changed.get(op, 0)
    total = sum(changed.values())
    is_only_one = sum(entry.counted for (name, _), entry in logged.items() if name == table) == 1
    return total if is_only_one or not total else None


def _is_explained(table: str, op: str, logged: Mapping[tuple[str, str], WriteEntry]) -> bool:
    """Return whether a logged statement explains these rows."""
    ops = {operation for (name, operation), entry in logged.items() if name == table and entry.counted}
    # An operation such as MERGE or COPY may insert, update and delete, so it explains rows of any kind.
    return op in ops or bool(ops - set(_COUNTED)) or (op == "write" and bool(ops))


def _make_event(service: str, key: tuple[str, str], entry: WriteEntry, rows: int | None) -> AuditEvent:
    details = {"service": service, "table": key[0], "op": key[1], "rows": rows}
    if entry.statements:
        details["statements"] = entry.statements
    return AuditEvent(entry.ts, 0, "db_write", details)
