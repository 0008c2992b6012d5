"""What a statement writes, read from its text: operation and table. Pure; row counters see what no text says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from holdfast.reading.tables import named
from holdfast.world.services.statements import Dialect

_PART = r"(?:\"(?:[^\"]|\"\")+\"|`(?:[^`]|``)+`|[^\W\d][\w$]*)"
_NAME = rf"{_PART}(?:\s*\.\s*{_PART}){{0,2}}"
_WORDS = r"(?:low_priority\s+|high_priority\s+|delayed\s+|quick\s+|ignore\s+|only\s+)*"
_DML = re.compile(
    rf"(?P<op>insert|replace|merge)\s+{_WORDS}(?:into\s+)?{_WORDS}(?P<into>{_NAME})"
    rf"|(?P<update>update)\s+{_WORDS}(?!set\b)(?P<updated>{_NAME})"
    rf"|(?P<delete>delete)\s+{_WORDS}from\s+{_WORDS}(?P<deleted>{_NAME})",
    re.IGNORECASE,
)
_LIST = rf"(?:only\s+)?{_NAME}(?:\s*\*)?(?:\s*,\s*(?:only\s+)?{_NAME}(?:\s*\*)?)*"
_TRUNCATE = re.compile(rf"truncate\s+(?:table\s+)?(?P<names>{_LIST})", re.IGNORECASE)
_MORE = re.compile(rf"\s*,\s*(?P<names>{_LIST})", re.IGNORECASE)
_LOAD = re.compile(rf"(?:copy\s+(?P<copied>{_NAME})\s*(?:\(.*?\)\s*)?from\b|load\s+data\b.*?\binto\s+table\s+(?P<loaded>{_NAME}))", re.I | re.S)  # noqa: E501  # fmt: skip
_DDL = re.compile(
    rf"(?P<op>create|alter|drop|rename|comment\s+on|refresh)\s+(?P<kind>(?:[a-z]+\s+)*?)"
    rf"(?P<what>table|view|index|trigger|rule|policy|sequence|function|procedure|schema|database|type|domain|extension"
    rf"|role|user|event|publication|subscription|server|aggregate|operator|tablespace|language|cast|collation)\s+"
    rf"(?:concurrently\s+)?(?:if\s+(?:not\s+)?exists\s+)?(?:only\s+)?(?P<name>{_NAME})?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_ON = re.compile(rf"\bon\s+(?:only\s+)?(?P<name>{_NAME})", re.IGNORECASE)
_INTO = re.compile(rf"\binto\s+(?P<temp>temp(?:orary)?\s+)?(?:unlogged\s+)?(?:table\s+)?(?P<name>{_NAME})", re.I)
_LEADING = re.compile(r"(?:\s+|--[^\n]*\n?|#[^\n]*\n?|/\*.*?\*/|\()*", re.DOTALL)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'?|\$(\w*)\$.*?(?:\$\1\$|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_NOT_A_WRITE = re.compile(r"(?:\bfor\s+(?:no\s+key\s+)?|\bon\s+|\bkey\s+|\bdo\s+|\bthen\s+)$", re.IGNORECASE)
_CONDITIONAL = re.compile(r"/\*M?!\d*(.*?)(?:\*/|\Z)", re.DOTALL)
"""What MySQL reads as part of the statement."""
_RIGHTS = frozenset({"grant", "revoke"})
_WRAPPED = frozenset({"with", "explain", "prepare", "analyze"})


class Write(Struct, frozen=True):
    """One table (or other object) that a statement writes."""

    op: str
    table: str
    temporary: bool = False
    counted: bool = True
    """Row counters see it: a statement that changed no row is no write."""


def writes_of(statement: str, dialect: Dialect) -> tuple[Write, ...]:
    """All that one statement writes, so far as its text says."""
    if dialect == "mysql":
        statement = _CONDITIONAL.sub(r"\1", statement)
    text = statement[_LEADING.match(statement).end() :]  # type: ignore[union-attr]  # matches any text
    first = re.match(r"[a-z]*", text, re.IGNORECASE)[0].lower()  # type: ignore[index]  # the same
    return tuple(dict.fromkeys(_found(first, text, dialect)))


def _found(first: str, text: str, dialect: Dialect) -> Iterator[Write]:
    if first in ("insert", "replace", "merge", "update", "delete"):
        yield from _dml(text)
    elif first == "truncate":
        found = _TRUNCATE.match(text)
        yield from (Write("truncate", name, counted=False) for name in _names(found))
    elif first in ("copy", "load"):
        found = _LOAD.match(text)
        if found:
            yield Write("insert", plain(found["copied"] or found["loaded"]))
    elif first in ("create", "alter", "drop", "rename", "comment", "refresh"):
        yield from _ddl(text)
    elif first in _RIGHTS:
        yield Write(first, "", counted=False)
    elif first in _WRAPPED:
        yield from _within(text)
    elif first == "select" and dialect == "postgres":
        found = _INTO.search(_QUOTED.sub("''", text))
        if found:
            yield Write("create", plain(found["name"]), bool(found["temp"]), counted=False)


def _dml(text: str) -> Iterator[Write]:
    found = _DML.match(text)
    if found is None:  # MySQL's UPDATE and DELETE of several tables
        found = re.match(rf"(?P<op>update|delete)\s+{_WORDS}(?P<into>{_NAME})", text, re.IGNORECASE)
    if found:
        groups = found.groupdict()
        op = groups["op"] or groups.get("update") or groups.get("delete") or ""
        name = groups["into"] or groups.get("updated") or groups.get("deleted") or ""
        yield Write(op.lower(), plain(name))


def _ddl(text: str) -> Iterator[Write]:
    found = _DDL.match(text)
    if found is None:
        return
    op, what, name = found["op"].split()[0].lower(), found["what"].lower(), plain(found["name"] or "")
    temporary = bool(re.search(r"\btemp(orary)?\b", found["kind"], re.IGNORECASE))
    if what in ("index", "trigger", "rule", "policy"):
        on = _ON.search((found["name"] or "") + " " + found["rest"]) if op != "drop" else None
        yield Write(op, plain(on["name"]) if on else f"{what} {name}", counted=False)
    elif what in ("table", "view"):
        yield Write(op, name, temporary, counted=False)
        if op == "drop":
            yield from (Write(op, more, counted=False) for more in _names(_MORE.match(found["rest"])))
    else:
        yield Write(op, f"{what} {name}", counted=False)


def _names(found: re.Match[str] | None) -> list[str]:
    """All names of a list."""
    return [plain(name) for name in re.findall(_NAME, found["names"]) if name.lower() != "only"] if found else []


def _within(text: str) -> Iterator[Write]:
    """Writes inside WITH, EXPLAIN ANALYZE and PREPARE."""
    bare = _QUOTED.sub("''", text)
    for found in _DML.finditer(bare):
        before = bare[max(0, found.start() - 20) : found.start()]
        if not _NOT_A_WRITE.search(before) and (not before or not (before[-1].isalnum() or before[-1] in '_."`')):
            yield from _dml(found[0])


def plain(name: str) -> str:
    """A name without quotes, but where a part has a dot in it; unquoted ones fold to lower case."""
    parts = re.findall(_PART, name)
    return named(*(p[1:-1].replace(p[0] * 2, p[0]) if p[0] in '"`' else p.lower() for p in parts))
