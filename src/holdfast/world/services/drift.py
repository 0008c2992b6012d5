"""Seeded bad data in a table, like real tables after a few years. The same seed gives the same damage."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from msgspec import Struct

from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.world import DriftKind
from holdfast.protocols.service import Database
from holdfast.service_kinds import get_protocol_traits
from holdfast.sqltext.lexer import Dialect, quote_name

READ_S = 60.0
ROW_LIMIT = 100_000
"""Maximum number of rows of a table; a larger table is rejected, not partly damaged."""
_COLUMNS = """
SELECT c.column_name, c.is_nullable, c.data_type, c.column_default, {extra},
       (SELECT count(*) FROM information_schema.key_column_usage k
        WHERE k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name),
       (SELECT count(*) FROM information_schema.key_column_usage k
        JOIN information_schema.table_constraints t ON t.constraint_name = k.constraint_name
         AND t.table_schema = k.table_schema AND t.table_name = k.table_name
        WHERE t.constraint_type = 'PRIMARY KEY'
          AND k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name)
FROM information_schema.columns c
WHERE c.table_name = {table} AND c.table_schema = {schema}
ORDER BY c.ordinal_position
"""
_DATES = re.compile(r"date|time", re.IGNORECASE)
_AGE = timedelta(days=365 * 3)


class Column(Struct, frozen=True):
    """A column as drift sees it."""

    name: str
    nullable: bool
    type: str
    generated: bool
    """The database fills it in: an identity, a sequence, a generated value."""
    keyed: bool
    """Part of a key or reference: changing it would break the table, not its data."""
    primary: bool

    @property
    def has_date(self) -> bool:
        return bool(_DATES.search(self.type)) and not self.type.startswith("time ")


class Table(Struct, frozen=True):
    """A table and its rows, in the order of their keys."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    dialect: Dialect

    @property
    def free(self) -> list[int]:
        """Columns whose values may be changed."""
        return [n for n, column in enumerate(self.columns) if not column.keyed and not column.generated]

    def write_update(self, row: int, column: int, value: Any) -> str:
        """Return the statement that sets one value."""
        d = self.dialect
        keys = " AND ".join(
            f"{cast_to_text(key.name, d)} = {quote_value(self.rows[row][n], d)}"
            for n, key in enumerate(self.columns)
            if key.primary
        )
        name = quote_name(self.columns[column].name, d)
        return f"UPDATE {quote_table(self.name, d)} SET {name} = {quote_value(value, d)} WHERE {keys}"  # noqa: S608


async def read_table(database: Database, table: str, dialect: Dialect) -> Table:
    schema, _, name = table.rpartition(".")
    current_schema = "current_schema()" if dialect == "postgres" else "database()"
    extra = "c.is_identity" if dialect == "postgres" else "c.extra"
    question = _COLUMNS.format(
        table=quote_value(name, dialect), schema=quote_value(schema, dialect) if schema else current_schema, extra=extra
    )
    listed = await database.query(question, timeout_s=READ_S, keep=2_000)
    columns = tuple(_parse_column(row) for row in listed.rows)
    if not columns:
        raise QueryFailed(
            f"there is no table {table}: put the drift fixture after the one that creates it", code="fixture-failed"
        )
    if not any(column.primary for column in columns):
        raise QueryFailed(
            f"table {table} has no primary key, so its rows cannot be identified; add one", code="fixture-failed"
        )
    words = ", ".join(cast_to_text(column.name, dialect) for column in columns)
    order = ", ".join(quote_name(column.name, dialect) for column in columns if column.primary)
    rows = await database.query(f"SELECT {words} FROM {quote_table(table, dialect)} ORDER BY {order}", timeout_s=READ_S, keep=ROW_LIMIT)  # noqa: E501, S608  # fmt: skip
    if rows.count > len(rows.rows):
        raise HarnessError(
            f"table {table} has {rows.count} rows; a drift fixture takes at most {ROW_LIMIT}", code="fixture-failed"
        )
    return Table(table, columns, rows.rows, dialect)


def _parse_column(row: Sequence[Any]) -> Column:
    name, nullable, kind, default, extra, keys, primary = row
    is_generated = extra not in (None, "", "NO") or "nextval(" in str(default or "")
    return Column(name, nullable == "YES", kind, is_generated, bool(keys), bool(primary))


def cast_to_text(name: str, dialect: Dialect) -> str:
    """Return the SQL that reads a column as text, which can be written back unchanged."""
    return f"CAST({quote_name(name, dialect)} AS {'text' if dialect == 'postgres' else 'char'})"


def quote_table(table: str, dialect: Dialect) -> str:
    return ".".join(quote_name(part, dialect) for part in table.split("."))


def quote_value(value: Any, dialect: Dialect) -> str:
    """Return a value as SQL text; text for a number or date column becomes a number or date."""
    if value is None:
        return "NULL"
    text = str(value).replace("'", "''")
    return "'" + (text.replace("\\", "\\\\") if dialect == "mysql" else text) + "'"


async def damage_table(database: Database, table: str, rate: float, kinds: Sequence[DriftKind], rng: Random) -> int:
    """Damage about `rate` of the rows, one kind each in turn; return how many. A kind that fails is skipped.

    null empties a value · swap exchanges one column's values of two rows · stale sets a date three years back, or gives
    a row the value of the one before it · duplicate writes a row again under a new key.
    """
    content = await read_table(database, table, get_protocol_traits(database.spec).wire or "postgres")
    wanted = min(len(content.rows), max(1, round(len(content.rows) * rate))) if rate > 0 and content.rows else 0
    chosen = sorted(rng.sample(range(len(content.rows)), wanted))
    statements = []
    for n, row in enumerate(chosen):
        # Kinds take turns by row. One that the table's constraints forbid gives way to the next, so that the rate still
        # holds.
        for kind in (*kinds[n % len(kinds) :], *kinds[: n % len(kinds)]):
            statement = DAMAGE[kind](content, row, rng)
            if statement and await _try(database, statement):
                statements.append(statement)
                break
    return len(statements)


async def _try(database: Database, statement: str) -> bool:
    """Execute the statement; return False if the table's constraints forbid it."""
    try:
        await database.execute(statement)
    except QueryFailed:
        return False
    return True


def _write_null(table: Table, row: int, rng: Random) -> str:
    able = [n for n in table.free if table.columns[n].nullable and table.rows[row][n] is not None]
    return table.write_update(row, rng.choice(able), None) if able else ""


def _write_swap(table: Table, row: int, rng: Random) -> str:
    able = [n for n in table.free if any(other[n] != table.rows[row][n] for other in table.rows)]
    if not able:
        return ""
    column = rng.choice(able)
    other = rng.choice([n for n, values in enumerate(table.rows) if values[column] != table.rows[row][column]])
    value, other_value = table.rows[row][column], table.rows[other][column]
    if (value is None or other_value is None) and not table.columns[column].nullable:
        return ""
    first, second = table.write_update(row, column, other_value), table.write_update(other, column, value)
    return f"BEGIN;\n{first};\n{second};\nCOMMIT"


def _write_stale(table: Table, row: int, rng: Random) -> str:
    dated = [n for n in table.free if table.columns[n].has_date and table.rows[row][n] is not None]
    if dated:
        column = rng.choice(dated)
        return table.write_update(row, column, _make_older(table.rows[row][column]))
    before = table.rows[row - 1] if row else table.rows[-1]
    able = [n for n in table.free if before[n] is not None and before[n] != table.rows[row][n]]
    if not able:
        return ""
    column = rng.choice(able)
    return table.write_update(row, column, before[column])


def _make_older(value: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    older = (moment - _AGE).isoformat(sep=" ")
    return older if len(value) > len("2026-01-01") else older[:10]


def _write_duplicate(table: Table, row: int, rng: Random) -> str:
    """Insert the row again. A key that the database does not fill in is counted up from its maximum."""
    names, values = [], []
    for n, column in enumerate(table.columns):
        if column.generated:
            continue
        value = table.rows[row][n]
        if column.primary:
            values_so_far = [other[n] for other in table.rows]
            if not str(value).lstrip("-").isdigit():
                return ""
            value = max(int(other) for other in values_so_far) + 1 + row
        names.append(quote_name(column.name, table.dialect))
        values.append(quote_value(value, table.dialect))
    return f"INSERT INTO {quote_table(table.name, table.dialect)} ({', '.join(names)}) VALUES ({', '.join(values)})"  # noqa: S608


DAMAGE: dict[str, Callable[[Table, int, Random], str]] = {
    "null": _write_null,
    "swap": _write_swap,
    "stale": _write_stale,
    "duplicate": _write_duplicate,
}
