"""A table as a drift fixture sees it: columns, keys, rows, and the words of its database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from holdfast.errors import HarnessError, QueryFailed
from holdfast.protocols import Database
from holdfast.sqltext.lexer import Dialect

READ_S = 60.0
MOST = 100_000
"""Rows of a table that can be damaged; a larger one is refused, not half done."""
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


class Column(Struct, frozen=True):
    """A column as drift sees it."""

    name: str
    nullable: bool
    type: str
    made: bool
    """The database fills it in: an identity, a sequence, a generated value."""
    keyed: bool
    """Part of a key or reference: changing it would break the table, not its data."""
    primary: bool

    @property
    def dated(self) -> bool:
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
        return [n for n, column in enumerate(self.columns) if not column.keyed and not column.made]

    def change(self, row: int, column: int, value: Any) -> str:
        """The statement that sets one value."""
        d = self.dialect
        keys = " AND ".join(
            f"{as_text(key.name, d)} = {literal(self.rows[row][n], d)}"
            for n, key in enumerate(self.columns)
            if key.primary
        )
        name = quoted(self.columns[column].name, d)
        return f"UPDATE {full(self.name, d)} SET {name} = {literal(value, d)} WHERE {keys}"  # noqa: S608


async def read(database: Database, table: str, dialect: Dialect) -> Table:
    schema, _, name = table.rpartition(".")
    here = "current_schema()" if dialect == "postgres" else "database()"
    extra = "c.is_identity" if dialect == "postgres" else "c.extra"
    question = _COLUMNS.format(
        table=literal(name, dialect), schema=literal(schema, dialect) if schema else here, extra=extra
    )
    listed = await database.query(question, timeout_s=READ_S, keep=2_000)
    columns = tuple(_column(row) for row in listed.rows)
    if not columns:
        raise QueryFailed(f"there is no table {table}: a drift fixture comes after the one that makes it")
    if not any(column.primary for column in columns):
        raise QueryFailed(f"table {table} has no primary key, so that no row of it can be named; give it one")
    words = ", ".join(as_text(column.name, dialect) for column in columns)
    order = ", ".join(quoted(column.name, dialect) for column in columns if column.primary)
    rows = await database.query(f"SELECT {words} FROM {full(table, dialect)} ORDER BY {order}", timeout_s=READ_S, keep=MOST)  # noqa: E501, S608  # fmt: skip
    if rows.count > len(rows.rows):
        raise HarnessError(f"table {table} has {rows.count} rows; a drift fixture takes at most {MOST}")
    return Table(table, columns, rows.rows, dialect)


def _column(row: Sequence[Any]) -> Column:
    name, nullable, kind, default, extra, keys, primary = row
    made = extra not in (None, "", "NO") or "nextval(" in str(default or "")
    return Column(name, nullable == "YES", kind, made, bool(keys), bool(primary))


def as_text(name: str, dialect: Dialect) -> str:
    """A column in the database's own words, so that its value can be written back as it was."""
    return f"CAST({quoted(name, dialect)} AS {'text' if dialect == 'postgres' else 'char'})"


def quoted(name: str, dialect: Dialect) -> str:
    sign = '"' if dialect == "postgres" else "`"
    return sign + name.replace(sign, sign * 2) + sign


def full(table: str, dialect: Dialect) -> str:
    return ".".join(quoted(part, dialect) for part in table.split("."))


def literal(value: Any, dialect: Dialect) -> str:
    """A value as SQL text; text that stands for a number or a date becomes one where the column is one."""
    if value is None:
        return "NULL"
    text = str(value).replace("'", "''")
    return "'" + (text.replace("\\", "\\\\") if dialect == "mysql" else text) + "'"
