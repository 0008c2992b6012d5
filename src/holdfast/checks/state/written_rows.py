"""Finds the writes that are still in the database: compares the audit log with the tables before and after.

The log lists attempted writes, including those of transactions that were rolled back. Only rows that remain count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from holdfast.checks.state.tables import build_digest_query, read_default_schema, read_dialect, read_table_shapes
from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.world import AuditEvent
from holdfast.protocols.service import Database
from holdfast.sqltext.lexer import Dialect, format_name, quote_part

ROWS_KEPT = 100_000
"""The largest table that is compared row by row; a larger one cannot be judged."""
READ_S = 30.0
_DEFINES = ("create", "alter", "drop", "rename")
_ANY = ("replace", "merge", "write")
_REMOVES = frozenset(("delete", "truncate", "drop", "rename", *_ANY))
_ADDS = frozenset(("insert", "create", "rename", *_ANY))


class TableRows(Struct):
    """The definition of a table and the digests of its rows."""

    shape: str
    rows: Counter[tuple[str, str]] | None
    """Digests of key and content; None if there are too many rows. Without a primary key all keys are equal."""
    keyed: bool


class DatabaseRows(Struct):
    """The tables of one database, as the audit log names them."""

    dialect: Dialect
    default: str
    tables: dict[str, TableRows]


class RowChanges(Struct, frozen=True):
    """The numbers of added, removed and changed rows.

    Without a primary key, an added row and a removed row together count as a changed row.
    """

    added: int
    removed: int
    changed: int
    keyed: bool


ClaimedRows = Callable[[str], bool]


async def read_rows(of: Database, wanted: ClaimedRows, default: str | None = None) -> DatabaseRows:
    """Return the wanted tables; `default` is the schema whose tables have bare names, or the current schema if None."""
    try:
        dialect = await read_dialect(of, timeout_s=READ_S)
        bare = await read_default_schema(of, timeout_s=READ_S) if default is None else default
        database = DatabaseRows(dialect, bare, {})
        for name, table in (await read_table_shapes(of, dialect, timeout_s=READ_S)).items():
            label = quote_part(name[1]) if quote_part(name[0]) == bare else format_name(*name)
            if wanted(label):
                read = await of.query(build_digest_query(name, table, dialect), timeout_s=READ_S, keep=ROWS_KEPT)
                whole = read.count == len(read.rows)
                rows = Counter((str(key), str(row)) for key, row in read.rows) if whole else None
                database.tables[label] = TableRows(table.shape, rows, any(column.primary for column in table.columns))
    except TimeoutError as late:
        raise HarnessError(
            f"reading the tables of {of.spec.name} took longer than {READ_S:g} s", code="check-timeout"
        ) from late
    return database


async def read_remaining_rows(of: Database, wanted: ClaimedRows, before: DatabaseRows) -> DatabaseRows:
    """Return the tables after the agent ended; none if it dropped the database."""
    try:
        return await read_rows(of, wanted, before.default)
    except QueryFailed:
        return DatabaseRows(before.dialect, before.default, {})


def find_remaining_writes(
    events: Sequence[AuditEvent], before: Mapping[str, DatabaseRows], after: Mapping[str, DatabaseRows]
) -> tuple[list[AuditEvent], list[tuple[AuditEvent, str]]]:
    """Return the writes that are still in the database, and the reasons for writes whose fate is unknown."""
    tried: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for event in events:
        tried[_get_table(event)].add(_get_operation(event))
    remaining: list[AuditEvent] = []
    unknown: list[tuple[AuditEvent, str]] = []
    for event in events:
        service, table = _get_table(event)
        write: AuditEvent | str | None = event
        if event.type == "db_write":
            write = _find_write(event, before.get(service), after.get(service), tried[service, table])
        if isinstance(write, str):
            unknown.append((event, write))
        elif write is not None:
            remaining.append(write)
    return remaining, unknown


def _find_write(
    event: AuditEvent, before: DatabaseRows | None, after: DatabaseRows | None, tried: Set[str]
) -> AuditEvent | str | None:
    """Return the write with the number of rows that remain; None if none do; a reason if that is unknown."""
    (_, table), op = _get_table(event), _get_operation(event)
    if before is None or after is None or table in ("", "*") or " " in table:
        return f"whether {op or 'write'} {table} was kept is unknown"
    table_before, table_after = before.tables.get(table), after.tables.get(table)
    if op in _DEFINES:
        return event if _is_still_defined(op, table_before, table_after) else None
    if any(one is not None and one.rows is None for one in (table_before, table_after)):
        return f"{table} has more than {ROWS_KEPT} rows: which of them were kept is unknown"
    rows = _count_remaining_rows(event, _count_changes(table_before, table_after), tried, before.dialect)
    return replace(event, details={**event.details, "rows": rows}) if rows else None


def _get_table(event: AuditEvent) -> tuple[str, str]:
    return str(event.details.get("service", "")), str(event.details.get("table", ""))


def _get_operation(event: AuditEvent) -> str:
    return str(event.details.get("op", "")).lower()


def _is_still_defined(op: str, before: TableRows | None, after: TableRows | None) -> bool:
    """Return whether the effect of a CREATE, ALTER, DROP or RENAME is still there."""
    if op == "drop":
        return after is None
    if op == "create" and after is None:
        return False
    return before is None or after is None or before.shape != after.shape


def _count_changes(table_before: TableRows | None, table_after: TableRows | None) -> RowChanges:
    before: Counter[tuple[str, str]] = (table_before.rows if table_before else None) or Counter()
    after: Counter[tuple[str, str]] = (table_after.rows if table_after else None) or Counter()
    # Multisets of (key, content): a row with the same key on both sides of the difference was changed, not removed and
    # added.
    gained, lost = _count_by_key(after - before), _count_by_key(before - after)
    changed = sum(min(count, lost[key]) for key, count in gained.items())
    keyed = table_before is None or table_after is None or (table_before.keyed and table_after.keyed)
    return RowChanges(gained.total() - changed, lost.total() - changed, changed, keyed)


def _count_by_key(rows: Counter[tuple[str, str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for (key, _), count in rows.items():
        counts[key] += count
    return counts


def _count_remaining_rows(event: AuditEvent, rows: RowChanges, tried: Set[str], dialect: Dialect) -> int:
    """Return the number of rows that the statement left behind."""
    # The tables show only the sum of all statements. A row that was deleted and inserted again looks changed, as does
    # a row that MySQL's INSERT ... ON DUPLICATE KEY updated. An UPDATE of a key looks like a row removed and one added.
    op = _get_operation(event)
    if op in _ANY:
        return rows.added + rows.removed + rows.changed
    if op == "update":
        return rows.changed + min(rows.added, rows.removed)
    if op in ("delete", "truncate"):
        return (
            _add_changed_rows(rows.removed, event, rows, tried)
            if _can_be_replaced(rows, tried, _ADDS)
            else rows.removed
        )
    if op == "insert":
        may = dialect == "mysql" or _can_be_replaced(rows, tried, _REMOVES)
        return _add_changed_rows(rows.added, event, rows, tried) if may else rows.added
    return 0


def _can_be_replaced(rows: RowChanges, tried: Set[str], other_half: Set[str]) -> bool:
    """Return whether changed rows may come from a DELETE and an INSERT: the log has the other half of the pair.

    Without a key, it is assumed unless the log has an UPDATE.
    """
    return bool(tried & other_half) or (not rows.keyed and "update" not in tried)


def _add_changed_rows(sure: int, event: AuditEvent, rows: RowChanges, tried: Set[str]) -> int:
    """Add the changed rows; if an UPDATE may have caused some, no more rows than the statement attempted."""
    most = event.details.get("rows")
    if "update" not in tried:
        return sure + rows.changed
    return sure + min(rows.changed, max(0, most - sure)) if isinstance(most, int) else sure or rows.changed
