"""Names of tables: how they are written, and which of them a list of names and globs covers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def named(*parts: str) -> str:
    """A table as people write it, with its schema; a part that has a dot in it is quoted."""
    return ".".join(map(part, parts))


def part(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if "." in name else name


def covers(allowed: Iterable[str], name: str, default: str) -> bool:
    """Whether one of them is the table. A pattern without a schema is about tables of the default one, or without any.

    The table of another database has one part more, and needs as many in the pattern.
    """
    bare = name.removeprefix(f"{default}.") if default else name
    patterns = [one.lower() for one in allowed]
    if any(fnmatchcase(name.lower(), one) for one in patterns if 0 < depth(name) <= depth(one)):
        return True
    return not depth(bare) and any(fnmatchcase(bare.lower(), one) for one in patterns if not depth(one))


def depth(name: str) -> int:
    """How many parts stand before the table: its schema, its database."""
    return _QUOTED.sub("", name).count(".")
