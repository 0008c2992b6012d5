"""How tables are made: two looks at them tell what no statement and no row counter says. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class TableShape(Struct, frozen=True):
    """One table, or a part of one."""

    columns: str
    """Changes with its columns."""
    file: tuple[object, ...]
    """Changes when its rows get a new file: a TRUNCATE, or a rewrite of the table."""
    of: str = ""
    """The table whose part it is; empty: its own."""
    empty: bool = False
    """It holds no row, so far as its server knows without counting."""
    dated: bool = False
    """Its file is known by the second in which it was made alone; but the server counts its rows."""


Tables = dict[str, TableShape]


def remade(before: Mapping[str, TableShape], after: Mapping[str, TableShape]) -> dict[str, str]:
    """Which tables are made in another way now, and by what operation."""
    found: dict[str, str] = {}
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was is None or now is None:
            found[name] = "create" if was is None else "drop"
        elif was.columns != now.columns:
            found[now.of or name] = "alter"
        elif was.file != now.file:
            found.setdefault(now.of or name, "truncate" if now.empty else "rewrite")
    return found
