"""The databases of a world and the shape of their tables: dialect, columns, keys, triggers, privileges, digests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from holdfast.errors import HarnessError
from holdfast.model.codec import digest, encode_canonical
from holdfast.protocols.service import Database
from holdfast.protocols.world import World
from holdfast.sqltext.lexer import Dialect, format_name, quote_name, quote_part

_VERSION = "SELECT version()"
_DEFAULT: dict[Dialect, str] = {"postgres": "SELECT current_schema()", "mysql": "SELECT database()"}
"""Queries for the default schema."""

T = TypeVar("T")


def get_database(world: World, service: str) -> Database:
    """Return the service of that name; raise HarnessError if it is not a database."""
    candidate = world.services.get(service)
    if not isinstance(candidate, Database):
        raise HarnessError(f"{service} is not a Postgres or MySQL service", code="check-service-wrong")
    return candidate


async def read_dialect(of: Database, *, timeout_s: float) -> Dialect:
    """Return the SQL dialect, as the server reports it."""
    rows = await of.query(_VERSION, timeout_s=timeout_s)
    return "postgres" if str(rows.rows[0][0]).startswith("PostgreSQL") else "mysql"


async def read_default_schema(of: Database, *, timeout_s: float) -> str:
    """Return the schema of unqualified names: the first existing one of the search path, or the database.

    "" if none.
    """
    rows = await of.query(_DEFAULT[await read_dialect(of, timeout_s=timeout_s)], timeout_s=timeout_s)
    return quote_part(str(rows.rows[0][0] or ""))


def split_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


COLUMNS_KEPT = 50_000
"""Maximum number of columns, and of triggers, of all tables together."""
_POSTGRES = """
SELECT n.nspname, c.relname, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), coalesce(a.attnum = ANY (k.conkey), false),
  CASE WHEN row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum) = 1 THEN pg_catalog.jsonb_build_array(
    c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity, c.relreplident, c.reloptions, c.relacl::text,
    pg_catalog.pg_get_userbyid(c.relowner), pg_catalog.pg_get_expr(c.relpartbound, c.oid),
    (SELECT pg_catalog.jsonb_agg(pg_catalog.pg_get_indexdef(i.indexrelid) || i.indisvalid::text ORDER BY i.indexrelid)
     FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid),
    (SELECT pg_catalog.jsonb_agg(o.conname || ' ' || pg_catalog.pg_get_constraintdef(o.oid) ORDER BY o.conname)
     FROM pg_catalog.pg_constraint o WHERE o.conrelid = c.oid),
    (SELECT pg_catalog.jsonb_agg(pg_catalog.pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text ORDER BY t.oid)
     FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND (NOT t.tgisinternal OR t.tgenabled <> 'O')),
    (SELECT pg_catalog.jsonb_agg(pg_catalog.pg_get_ruledef(r.oid) || ' ' || r.ev_enabled::text ORDER BY r.oid)
     FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid),
    (SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_array(p.polname, p.polcmd, p.polpermissive, p.polroles::text,
       pg_catalog.pg_get_expr(p.polqual, c.oid), pg_catalog.pg_get_expr(p.polwithcheck, c.oid)) ORDER BY p.polname)
     FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid),
    (SELECT pg_catalog.jsonb_agg(h.inhparent::text ORDER BY h.inhseqno)
     FROM pg_catalog.pg_inherits h WHERE h.inhrelid = c.oid))::text END,
  pg_catalog.jsonb_build_array(a.attnotnull, a.attidentity, a.attgenerated, a.attcollation::text, a.attacl::text,
    pg_catalog.pg_get_expr(d.adbin, d.adrelid), y.typnotnull, y.typdefault,
    (SELECT pg_catalog.jsonb_agg(e.enumlabel ORDER BY e.enumsortorder)
     FROM pg_catalog.pg_enum e WHERE e.enumtypid IN (y.oid, y.typelem)),
    (SELECT pg_catalog.jsonb_agg(pg_catalog.pg_get_constraintdef(o.oid) ORDER BY o.conname)
     FROM pg_catalog.pg_constraint o WHERE o.contypid = y.oid))::text,
  pg_catalog.has_table_privilege(c.oid, 'SELECT')
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_catalog.pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY n.nspname, c.relname, a.attnum
"""  # noqa: E501
"""One row per column; properties of the table are in its first row.

Functions are fully qualified: an agent may have defined others.
"""
_SYSTEM = "('mysql', 'information_schema', 'performance_schema', 'sys')"
_MYSQL = f"""
SELECT t.table_schema, t.table_name, c.column_name, c.data_type, c.column_key = 'PRI', NULL, NULL, TRUE
FROM information_schema.tables t
LEFT JOIN information_schema.columns c ON c.table_schema = t.table_schema AND c.table_name = t.table_name
WHERE t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND t.table_schema NOT IN {_SYSTEM}
ORDER BY t.table_schema, t.table_name, c.ordinal_position
"""  # noqa: S608
_MYSQL_TRIGGERS = f"""
SELECT event_object_schema, event_object_table, trigger_name, action_timing, event_manipulation, action_order,
       action_statement, sql_mode, definer
FROM information_schema.triggers WHERE event_object_schema NOT IN {_SYSTEM} ORDER BY 1, 2, 3
"""  # noqa: S608
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
"""A counter in the output of SHOW CREATE TABLE: even a row that was rolled back changes it."""

TableName = tuple[str, str]
"""Schema and name."""


class TableColumn(Struct, frozen=True):
    """A column, as digests need it."""

    name: str
    type: str
    primary: bool


class ComparedTable(Struct):
    """A table: its columns, and a fingerprint of its definition."""

    columns: list[TableColumn]
    made: list[Any]
    readable: bool = True
    """Whether its rows may be read."""

    @property
    def shape(self) -> str:
        return digest(encode_canonical([[column.name, column.type] for column in self.columns] + self.made))


TableComparison = dict[TableName, ComparedTable]


async def read_table_shapes(of: Database, dialect: Dialect, *, timeout_s: float) -> TableComparison:
    """Return every table, in order of schema and name."""
    tables: TableComparison = {}
    for row in await _read_rows(of, _POSTGRES if dialect == "postgres" else _MYSQL, timeout_s):
        schema, table, column, kind, primary, own, more, readable = row
        entry = tables.setdefault((str(schema), str(table)), ComparedTable([], []))
        # Whatever the query returns about a table or a column is part of the definition. It is only compared as a
        # digest, so nobody has to name what changed.
        entry.made += [own, more]
        entry.readable = bool(readable)
        if column is not None:
            entry.columns.append(TableColumn(str(column), str(kind), bool(primary)))
    if dialect == "mysql":
        await _add_definitions(of, tables, timeout_s)
    return tables


async def _add_definitions(of: Database, tables: TableComparison, timeout_s: float) -> None:
    """Add the CREATE TABLE statement that MySQL reports for each table, and its triggers."""
    for (schema, table), entry in tables.items():
        name = f"{quote_name(schema, 'mysql')}.{quote_name(table, 'mysql')}"
        # MySQL has no single view with checks, generated columns and partitions, but it prints all of them as a
        # statement.
        definition = await of.query(f"SHOW CREATE TABLE {name}", timeout_s=timeout_s)
        entry.made += [_COUNTER.sub("", str(definition.rows[0][1]))]
    for schema, table, *trigger in await _read_rows(of, _MYSQL_TRIGGERS, timeout_s):
        if (str(schema), str(table)) in tables:
            tables[str(schema), str(table)].made += [trigger]


async def _read_rows(of: Database, sql: str, timeout_s: float) -> tuple[tuple[Any, ...], ...]:
    result = await of.query(sql, timeout_s=timeout_s, keep=COLUMNS_KEPT)
    if result.count > len(result.rows):
        raise HarnessError(
            f"{of.spec.name} has more than {COLUMNS_KEPT} columns: its tables cannot be compared",
            code="check-input-lost",
        )
    return result.rows


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
