"""The definition of every table of a database: columns, keys, constraints, defaults, indexes, triggers, privileges."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from holdfast.checks.state.databases import quote_name
from holdfast.errors import HarnessError
from holdfast.model.codec import digest, encode_canonical
from holdfast.protocols.service import Database
from holdfast.sqltext.lexer import Dialect

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
