"""Finds the writes of a statement from its text: operation and table. Row counters see writes that no text shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from holdfast.sqltext.lexer import Dialect, TokenCursor, fold_name, format_name, unquote_name

_CHANGES = frozenset(("insert", "replace", "merge", "update", "delete"))
_DEFINES = frozenset(("create", "alter", "drop", "rename", "comment", "refresh"))
_RIGHTS = frozenset(("grant", "revoke"))
_MODIFIERS: dict[Dialect, frozenset[str]] = {
    "postgres": frozenset(("only",)),
    "mysql": frozenset(("low_priority", "high_priority", "delayed", "ignore")),
}
_NO_CHANGE_AFTER = frozenset(("for", "on", "key", "do", "then", "."))
"""FOR UPDATE, ON DELETE, ON DUPLICATE KEY UPDATE, DO UPDATE, THEN INSERT, a column of that name."""
_TABLES = frozenset(("table", "view"))
_OF_A_TABLE = frozenset(("index", "trigger", "rule", "policy"))
_OBJECTS = frozenset((
    "sequence", "function", "procedure", "schema", "database", "type", "domain", "extension", "role", "user", "event",
    "publication", "subscription", "server", "aggregate", "operator", "tablespace", "language", "cast", "collation",
))  # fmt: skip
_WHATS = _TABLES | _OF_A_TABLE | _OBJECTS
_INTO = re.compile("into", re.IGNORECASE)
_DEFINER = frozenset(("definer", "algorithm"))
"""After these more than words may precede the kind of object, as in DEFINER = `a`@`b`."""
_EXPLAINED = _CHANGES | {"with", "select", "create", "execute", "values", "table"}


class Write(Struct, frozen=True):
    """One table (or other object) that a statement writes."""

    op: str
    table: str
    temporary: bool = False
    counted: bool = True
    """Row counters see it: a statement that changed no row is not a write."""
    written: str = ""
    """The table as the statement spells it; empty for another object."""


def find_writes(statement: str, dialect: Dialect) -> tuple[Write, ...]:
    """Return everything that one statement writes, as far as its text shows; each table once per operation."""
    writes: dict[tuple[str, str], Write] = {}
    for write in _read_writes(TokenCursor(statement, dialect)):
        writes.setdefault((write.op, write.table), write)
    return tuple(writes.values())


def _read_writes(cursor: TokenCursor) -> Iterator[Write]:
    """Yield what the statement that begins here writes."""
    cursor.skip_all(("(",))
    first = cursor.word
    if first in _CHANGES:
        yield from _read_change(cursor)
    elif first == "truncate":
        cursor.advance()
        cursor.skip("table")
        yield from (_make_write("truncate", name, counted=False) for name in _read_names(cursor))
    elif first == "load":
        if cursor.skip_to("into") and cursor.skip("table") and (name := cursor.read_name()):
            yield _make_write("insert", name)
    elif first in _DEFINES:
        yield from _read_definition(cursor)
    elif first in _RIGHTS:
        yield Write(first, "", counted=False)
    elif first == "with" or (first == "select" and cursor.dialect == "postgres" and _INTO.search(cursor.sql)):
        yield from _read_nested(cursor)
    elif first in _WRAPPERS:
        yield from _WRAPPERS[first](cursor)


def _make_write(op: str, name: tuple[str, ...], temporary: bool = False, *, counted: bool = True) -> Write:
    return Write(op, format_plain_name(name), temporary, counted, ".".join(map(unquote_name, name)))


def format_plain_name(name: tuple[str, ...]) -> str:
    """Return a name without quotes, unless a part contains a dot; unquoted parts fold to lower case."""
    return format_name(*map(fold_name, name))


def _read_change(cursor: TokenCursor) -> Iterator[Write]:
    """Yield the table of an INSERT, UPDATE or the like: of several in MySQL's UPDATE and DELETE, the first."""
    op, modifiers = cursor.word, _MODIFIERS[cursor.dialect]
    cursor.advance()
    cursor.skip_all(modifiers | {"quick"} if op == "delete" and cursor.dialect == "mysql" else modifiers)
    if op != "update" and cursor.skip("from" if op == "delete" else "into"):
        cursor.skip_all(modifiers)
    cursor.skip("(")  # UPDATE ONLY (a)
    if name := cursor.read_name():
        yield _make_write(op, name)


def _read_names(cursor: TokenCursor) -> Iterator[tuple[str, ...]]:
    """Yield all names of a list."""
    while True:
        cursor.skip("only")
        if not (name := cursor.read_name()):
            return
        yield name
        cursor.skip("*")
        if not cursor.skip(","):
            return


def _read_copy(cursor: TokenCursor) -> Iterator[Write]:
    """Yield the table of a COPY FROM; a COPY of a query writes whatever the query writes."""
    cursor.advance()
    if cursor.word == "(":
        yield from _read_writes(cursor)
    elif name := cursor.read_name():
        if cursor.word == "(":
            cursor.skip_to(")")
        if cursor.word == "from":
            yield _make_write("insert", name)


def _read_explain(cursor: TokenCursor) -> Iterator[Write]:
    """Yield the writes of an EXPLAIN: only ANALYZE executes its statement, and MariaDB's ANALYZE always does."""
    runs = cursor.word == "analyze"
    cursor.advance()
    while not cursor.over and cursor.word not in _EXPLAINED:
        analyzes = cursor.skip("analyze") or cursor.skip("analyse")
        runs = runs or (analyzes and cursor.token.text.lower() not in ("off", "false", "0"))
        if not analyzes:
            cursor.advance()
    if runs:
        yield from _read_writes(cursor)


def _read_prepare(cursor: TokenCursor) -> Iterator[Write]:
    """Yield the writes of a PREPARE: its log entry shows what EXECUTE will do."""
    if cursor.skip_to("as"):
        yield from _read_writes(cursor)


_WRAPPERS: dict[str, Callable[[TokenCursor], Iterator[Write]]] = {
    "analyze": _read_explain,
    "copy": _read_copy,
    "explain": _read_explain,
    "prepare": _read_prepare,
}


def _read_definition(cursor: TokenCursor) -> Iterator[Write]:
    # Between the verb and the kind of object there may be words (OR REPLACE, UNIQUE, TEMPORARY) and, after DEFINER,
    # anything. Anything else there means that the statement is not understood, and then nothing is claimed.
    op, before = cursor.word, set[str]()
    cursor.advance()
    while cursor.word not in _WHATS:
        if cursor.over or not (cursor.token.kind == "word" or not before.isdisjoint(_DEFINER)):
            return
        before.add(cursor.word)
        cursor.advance()
    what = cursor.word
    cursor.advance()
    cursor.skip_all(("concurrently", "if", "not", "exists", "only"))
    yield from _read_defined_object(cursor, op, what, temporary=not before.isdisjoint(("temp", "temporary")))


def _read_defined_object(cursor: TokenCursor, op: str, what: str, *, temporary: bool) -> Iterator[Write]:
    name = cursor.read_name()
    if what in _TABLES:
        yield _make_write(op, name, temporary, counted=False)
        if op == "drop" and cursor.skip(","):
            yield from (_make_write(op, more, counted=False) for more in _read_names(cursor))
        return
    if what in _OF_A_TABLE and op != "drop" and cursor.skip_to("to" if f"{op} {what}" == "create rule" else "on"):
        cursor.skip("only")
        yield _make_write(op, cursor.read_name(), counted=False)
        return
    yield Write(op, f"{what} {format_plain_name(name)}", counted=False)


def _read_nested(cursor: TokenCursor) -> Iterator[Write]:
    """Yield the writes inside a WITH, and the table that PostgreSQL's SELECT INTO creates."""
    # No grammar is needed here: inside a WITH, a keyword such as DELETE starts a statement unless the word before it
    # makes it part of a clause (FOR UPDATE, ON DELETE). Strings and comments are separate tokens, so they cannot match.
    before, top = "", cursor.word
    while not cursor.over:
        word = cursor.word
        if word in _CHANGES and top == "with" and before not in _NO_CHANGE_AFTER:
            yield from _read_change(cursor)
            before = ""
            continue
        cursor.advance()
        if word == "into" and before != "." and cursor.dialect == "postgres":
            yield from _read_select_into(cursor)
        before = word


def _read_select_into(cursor: TokenCursor) -> Iterator[Write]:
    temporary = cursor.skip("temp") or cursor.skip("temporary")
    cursor.skip_all(("unlogged", "table"))
    if name := cursor.read_name():
        yield _make_write("create", name, temporary, counted=False)
