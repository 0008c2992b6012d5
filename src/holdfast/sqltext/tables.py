"""Names of tables: their syntax, and whether a list of names and globs covers one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def format_name(*parts: str) -> str:
    """Return a table as people write it, with its schema; a part that contains a dot is quoted."""
    return ".".join(map(quote_part, parts))


def quote_part(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if "." in name else name


def is_covered(allowed: Iterable[str], name: str, default: str) -> bool:
    """Whether one of the patterns matches the table.

    A pattern without a schema matches tables of the default schema and tables without one. A table of another
    database has one part more, and the pattern needs as many.
    """
    bare = name.removeprefix(f"{default}.") if default else name
    patterns = [one.lower() for one in allowed]
    if any(fnmatchcase(name.lower(), one) for one in patterns if 0 < count_qualifiers(name) <= count_qualifiers(one)):
        return True
    return not count_qualifiers(bare) and any(
        fnmatchcase(bare.lower(), one) for one in patterns if not count_qualifiers(one)
    )


def count_qualifiers(name: str) -> int:
    """Return the number of parts before the table: its schema, its database."""
    return _QUOTED.sub("", name).count(".")
