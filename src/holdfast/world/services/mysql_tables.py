"""The tables of a MariaDB or MySQL server as it knows them: their columns, and when and as what they were made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from holdfast.world.services.table_shape import Tables, TableShape

SYSTEM = "('mysql', 'information_schema', 'performance_schema', 'sys')"
_TABLES = f"SELECT table_schema, table_name, create_time, table_rows = 0, engine = 'InnoDB' FROM information_schema.tables WHERE engine IS NOT NULL AND table_schema NOT IN {SYSTEM}"  # noqa: E501, S608  # fmt: skip
_COLUMNS = f"SELECT table_schema, table_name, column_name, column_type, is_nullable FROM information_schema.columns WHERE table_schema NOT IN {SYSTEM} ORDER BY table_schema, table_name, ordinal_position"  # noqa: E501, S608  # fmt: skip
_NUMBERS = {
    True: "SELECT name, table_id FROM information_schema.innodb_sys_tables",
    False: "SELECT name, table_id FROM information_schema.innodb_tables",
}
"""InnoDB gives a table that is truncated a new number; MariaDB's and MySQL's words for it."""
_NO_PROCESS = 1227
"""Who may not see the processes of others does not get the numbers."""
_PART = re.compile("#p#", re.IGNORECASE)
_CHAR = re.compile("@([0-9a-f]{4})")

_Key = tuple[str, str]


def tables(cursor: Any, name: Callable[[str, str], str], *, mariadb: bool) -> Tables:
    """Every table of the server that the session sees; `name` makes one of database and table."""
    numbers, columns = _numbers(cursor, mariadb=mariadb), _columns(cursor)
    cursor.execute(_TABLES)
    found: Tables = {}
    for database, table, made_at, empty, innodb in cursor.fetchall():
        key = (str(database), str(table))
        file: tuple[object, ...] = tuple(numbers.get(key, ())) if innodb else (str(made_at),)
        found[name(*key)] = TableShape(columns.get(key, ""), file, empty=bool(empty), dated=not innodb)
    return found


def emptied(before: Mapping[str, TableShape], after: Mapping[str, TableShape], changed: Mapping[str, object]) -> Tables:
    """The tables as they are; one that was truncated in the second in which it was made has another file, too."""
    return {
        name: replace(now, file=(*now.file, "emptied"))
        if now.dated and now.empty and name not in changed and name in before and not before[name].empty
        else now
        for name, now in after.items()
    }


def _numbers(cursor: Any, *, mariadb: bool) -> dict[_Key, list[int]]:
    """The numbers of each table's parts, in order."""
    import pymysql

    try:
        cursor.execute(_NUMBERS[mariadb])
    except pymysql.Error as refused:
        if refused.args[0] != _NO_PROCESS:
            raise
        return {}
    found: dict[_Key, list[int]] = {}
    for path, number in sorted(cursor.fetchall()):
        database, _, table = path.partition("/")
        found.setdefault((_decoded(database), _decoded(_PART.split(table)[0])), []).append(number)
    return found


def _decoded(name: str) -> str:
    """A name as it is, of one as InnoDB keeps it."""
    return _CHAR.sub(lambda found: chr(int(found[1], 16)), name)


def _columns(cursor: Any) -> dict[_Key, str]:
    """A mark of each table's columns."""
    cursor.execute(_COLUMNS)
    marks: dict[_Key, Any] = {}
    for database, table, *column in cursor.fetchall():
        marks.setdefault((str(database), str(table)), blake2b(digest_size=8)).update(repr(column).encode())
    return {key: mark.hexdigest() for key, mark in marks.items()}
