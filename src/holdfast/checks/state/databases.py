"""The databases of a world: found by name, their tables told apart by what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.errors import HarnessError
from holdfast.model.codec import canonical, digest
from holdfast.protocols import Database, World
from holdfast.sqltext.tables import named, part

COLUMNS_KEPT = 50_000
"""Columns of all tables together that are looked at."""
AT_ONCE = 50
"""Tables that one statement reads."""
_VERSION = "SELECT version()"
_DEFAULT = {True: "SELECT current_schema()", False: "SELECT database()"}
"""Where a bare name leads, in PostgreSQL and in MySQL."""
_COLUMNS = """
SELECT t.table_schema, t.table_name, c.column_name, c.data_type, c.is_nullable
FROM information_schema.tables t
LEFT JOIN information_schema.columns c ON c.table_schema = t.table_schema AND c.table_name = t.table_name
WHERE t.table_type = 'BASE TABLE'
AND t.table_schema NOT IN ('pg_catalog', 'information_schema', 'mysql', 'performance_schema', 'sys')
ORDER BY t.table_schema, t.table_name, c.ordinal_position
"""

_QUOTE = '"'

_Table = tuple[str, str]
"""Schema and name."""


def database(world: World, service: str) -> Database:
    """The service of that name; HarnessError if it is no database."""
    found = world.services.get(service)
    if not isinstance(found, Database):
        raise HarnessError(f"{service} is no Postgres or MySQL service")
    return found


async def default_schema(of: Database, *, timeout_s: float) -> str:
    """The schema that a bare name leads to: the first of the search path that is there, or the database; "" if none."""
    found = await of.query(_DEFAULT[await _is_postgres(of, timeout_s)], timeout_s=timeout_s)
    return part(str(found.rows[0][0] or ""))


async def fingerprints(of: Database, *, timeout_s: float) -> dict[str, str]:
    """Every table, as `schema.table`, with a mark that changes with its columns and its rows, whatever their order."""
    columns = await of.query(_COLUMNS, timeout_s=timeout_s, keep=COLUMNS_KEPT)
    if columns.count > len(columns.rows):
        raise HarnessError(f"{of.spec.name} has more than {COLUMNS_KEPT} columns: its tables cannot be compared")
    shapes: dict[_Table, list[object]] = {}
    for schema, table, *column in columns.rows:
        shapes.setdefault((str(schema), str(table)), []).append(column)
    contents = _postgres if await _is_postgres(of, timeout_s) else _mysql
    marks: dict[str, str] = {}
    for some in _batches(list(shapes)):
        found = await of.query(contents(some), timeout_s=timeout_s, keep=AT_ONCE)
        for table, row in zip(some, found.rows, strict=True):
            marks[named(*table)] = digest(canonical([shapes[table], row[1:]]))
    return marks


async def _is_postgres(of: Database, timeout_s: float) -> bool:
    said = await of.query(_VERSION, timeout_s=timeout_s)
    return str(said.rows[0][0]).startswith("PostgreSQL")


def _batches(tables: Sequence[_Table]) -> Iterator[Sequence[_Table]]:
    for start in range(0, len(tables), AT_ONCE):
        yield tables[start : start + AT_ONCE]


def _postgres(tables: Sequence[_Table]) -> str:
    """Which table it is, its rows, and the sum of their hashes."""
    told = "count(*), coalesce(sum(hashtextextended(holdfast_row::text, 0)), 0)::text"
    parts = [
        f"SELECT {n}, {told} FROM {_quoted(schema, _QUOTE)}.{_quoted(table, _QUOTE)} AS holdfast_row"  # noqa: S608  # names are quoted
        for n, (schema, table) in enumerate(tables)
    ]
    return " UNION ALL ".join(parts) + " ORDER BY 1"


def _mysql(tables: Sequence[_Table]) -> str:
    """Rows come in the order of the tables."""
    return "CHECKSUM TABLE " + ", ".join(f"{_quoted(schema, '`')}.{_quoted(table, '`')}" for schema, table in tables)


def _quoted(name: str, sign: str) -> str:
    return sign + name.replace(sign, sign * 2) + sign
