"""The content of a table as SHA-256 digests of its rows.

The same row gives the same digest, whatever the agent has defined or set: in PostgreSQL functions are fully qualified
and settings that change the text of a value are fixed; in MySQL each column is hashed separately.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.checks.state.databases import quote_name, read_dialect, split_batches
from holdfast.checks.state.table_shapes import ComparedTable, TableComparison, TableName, read_table_shapes
from holdfast.model.codec import digest, encode_canonical
from holdfast.protocols.service import Database
from holdfast.sqltext.lexer import Dialect
from holdfast.sqltext.tables import format_name

AT_ONCE = 50
"""Number of tables that one statement reads."""
_SETTINGS = (
    ("extra_float_digits", "3"),
    ("datestyle", "ISO, MDY"),
    ("intervalstyle", "postgres"),
    ("timezone", "UTC"),
    ("bytea_output", "hex"),
)
_FIXED = " || ".join(f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in _SETTINGS)
_ONCE_SET = "WHERE holdfast_set.done IS NOT NULL"
_AS_NUMBER = {"float": "{0} + 0e0", "bit": "{0} + 0"}
"""MySQL types whose text is not the complete value, and how to get it."""


async def read_fingerprints(of: Database, *, timeout_s: float) -> dict[str, str]:
    """Return every table, as `schema.table`, with a fingerprint of its definition and its rows in any order."""
    dialect = await read_dialect(of, timeout_s=timeout_s)
    shapes = await read_table_shapes(of, dialect, timeout_s=timeout_s)
    contents: dict[TableName, tuple[object, ...]] = {}
    readable = [name for name, table in shapes.items() if table.readable]
    for some in split_batches(readable, AT_ONCE):
        sums = await of.query(_build_sums_query(some, shapes, dialect), timeout_s=timeout_s, keep=AT_ONCE)
        contents |= {name: row[1:] for name, row in zip(some, sums.rows, strict=True)}
    return {
        format_name(*name): digest(encode_canonical([table.shape, table.readable, contents.get(name)]))
        for name, table in shapes.items()
    }


def build_digest_query(name: TableName, table: ComparedTable, dialect: Dialect) -> str:
    """Return the statement that returns for every row a digest of its key (NULL if there is none) and one of the
    complete row.

    In PostgreSQL the transaction that wrote a row is part of it: a row rewritten with the same values differs.
    """
    if dialect == "postgres":
        keys = [f"holdfast_row.{quote_name(column.name, dialect)}" for column in table.columns if column.primary]
        key = _build_pg_hash(f"ROW({', '.join(keys)})") if keys else "NULL"
        row = _build_pg_hash("ROW(holdfast_row.xmin::text, holdfast_row)")
        rows = f"SELECT {key}, {row} FROM {_build_from(name, dialect)} {_ONCE_SET}"  # noqa: S608  # names are quoted
        return f"SELECT t.* FROM {_build_settings()}, LATERAL ({rows}) t"  # noqa: S608
    keys = [_build_mysql_hash(column.name, column.type) for column in table.columns if column.primary]
    key = f"SHA2(CONCAT_WS(',', {', '.join(keys)}), 256)" if keys else "NULL"
    return f"SELECT {key}, {_build_mysql_row(table)} FROM {_build_from(name, dialect)}"  # noqa: S608  # names are quoted


def _build_sums_query(tables: Sequence[TableName], shapes: TableComparison, dialect: Dialect) -> str:
    """Return the query for the row count of each table and the sums of two parts of the row digests."""
    if dialect == "mysql":
        sums = ", ".join(f"CAST(SUM(CAST(CONV(SUBSTR(h, {at}, 15), 16, 10) AS UNSIGNED)) AS CHAR)" for at in (1, 16))
        parts = [
            f"SELECT {n}, COUNT(*), {sums} FROM (SELECT {_build_mysql_row(shapes[name])} AS h"  # noqa: S608
            f" FROM {_build_from(name, dialect)}) t{n}"
            for n, name in enumerate(tables)
        ]
        return " UNION ALL ".join(parts) + " ORDER BY 1"
    sums = ", ".join(f"sum(('x' || pg_catalog.substr(h, {at}, 15))::bit(60)::bigint)::text" for at in (1, 16))
    rows = f"SELECT {_build_pg_hash('holdfast_row')} AS h"
    parts = [
        f"SELECT {n} AS n, count(*), {sums} FROM ({rows} FROM {_build_from(name, dialect)} {_ONCE_SET}) t"  # noqa: S608
        for n, name in enumerate(tables)
    ]
    return (
        f"SELECT all_of_them.* FROM {_build_settings()}, LATERAL ({' UNION ALL '.join(parts)}) all_of_them ORDER BY 1"  # noqa: S608
    )


def _build_settings() -> str:
    """Fix the settings before any row is read; each table waits for it."""
    return f"(SELECT {_FIXED} AS done OFFSET 0) holdfast_set"


def _build_pg_hash(row: str) -> str:
    text = f"pg_catalog.textin(pg_catalog.record_out({row}))"  # a cast to text could be one that the agent defined
    return f"pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to({text}, 'UTF8')), 'hex')"


def _build_mysql_row(table: ComparedTable) -> str:
    parts = [f"IFNULL({_build_mysql_hash(column.name, column.type)}, '')" for column in table.columns]
    return f"SHA2(CONCAT_WS(',', {', '.join(parts)}), 256)"


def _build_mysql_hash(column: str, kind: str) -> str:
    return f"SHA2({_AS_NUMBER.get(kind, '{0}').format(quote_name(column, 'mysql'))}, 256)"


def _build_from(name: TableName, dialect: Dialect) -> str:
    alias = "holdfast_row"
    return f"{quote_name(name[0], dialect)}.{quote_name(name[1], dialect)} AS {alias}"
