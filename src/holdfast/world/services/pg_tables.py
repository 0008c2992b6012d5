"""The tables of a PostgreSQL database as its catalog has them: their columns, and the files of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.world.services.table_shape import Tables, TableShape

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
"""Temporary tables are in schemas whose names begin with pg_, too."""


def tables(rows: Iterable[tuple[Any, ...]], name: Callable[[str, str, str], str]) -> Tables:
    """Every table of a database, of the rows that TABLES gave; `name` makes one of database, schema and table."""
    found: Tables = {}
    for database, schema, table, root_schema, root, oid, file, empty, columns in rows:
        of = name(database, root_schema, root) if root else ""
        found[name(database, schema, table)] = TableShape(columns or "", (oid, file), of, bool(empty))
    return found
