"""The effect of SQL text on a transaction, as far as its words show: a function that writes is invisible."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from holdfast.sqltext.lexer import Dialect, TokenCursor, split_pieces
from holdfast.sqltext.script import split_statements
from holdfast.sqltext.writes import find_writes

TransactionKind = Literal["begin", "commit", "rollback", "write", "read", "session"]

TEXT_KEPT = 200
_REMEMBERED = 2_000
"""Messages up to this length are cached with their meaning, because programs repeat them."""

_WRITES = frozenset((
    "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "TRUNCATE", "CREATE", "ALTER", "DROP", "GRANT", "REVOKE",
    "COMMENT", "REFRESH", "CALL", "DO", "EXECUTE", "LOAD", "IMPORT", "RENAME",
))  # fmt: skip
_READS = frozenset(("SELECT", "VALUES", "TABLE", "EXPLAIN", "DESCRIBE", "DESC", "FETCH", "COPY", "WITH", "ANALYZE"))
_DEFINING = frozenset(("CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "GRANT", "REVOKE"))
"""Statements that MySQL commits implicitly."""
_LOOKED_AT = _DEFINING | {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"}
"""Verbs whose meaning depends on the words that follow."""


_BLANK = {"string": "''", "comment": " ", "open": " ", "close": " "}
"""The placeholder for a shortened piece of a statement."""


class TransactionStatement(NamedTuple):
    """One statement."""

    kind: TransactionKind
    verb: str
    table: str = ""
    """The written table, if the words show it."""
    text: str = ""
    """Shortened."""
    ends: bool = False
    """It commits everything before it, and itself."""
    autocommit: bool | None = None
    """The value to which it sets autocommit."""


def parse_transaction(sql: str, dialect: Dialect) -> tuple[TransactionStatement, ...]:
    """Return the statements of one message, in order."""
    return _parse_cached(sql, dialect) if len(sql) <= _REMEMBERED else _parse(sql, dialect)


def _parse(sql: str, dialect: Dialect) -> tuple[TransactionStatement, ...]:
    read = (_parse_statement(text, dialect) for text in split_statements(sql, dialect))
    return tuple(statement for statement in read if statement is not None)


_parse_cached = lru_cache(512)(_parse)


def _parse_statement(text: str, dialect: Dialect) -> TransactionStatement | None:
    """Return the effect of one statement; None if it contains no word."""
    cursor = TokenCursor(text, dialect)
    while not cursor.over and cursor.token.kind != "word":
        cursor.advance()
    if cursor.over:
        return None
    verb = cursor.word.upper()
    cursor.advance()
    more = [*islice(cursor.read_words(), 4)] if verb in _LOOKED_AT else []
    autocommit = _read_autocommit(cursor) if dialect == "mysql" and verb == "SET" else None
    writes = find_writes(text, dialect) if verb in _WRITES or verb in _READS else ()
    kind = "write" if writes else _classify(verb, more, dialect)
    table = writes[0].written if writes else ""
    ends = dialect == "mysql" and verb in _DEFINING and "temporary" not in more
    return TransactionStatement(kind, verb, table, _shorten(text, dialect), ends, autocommit)


def _classify(verb: str, more: list[str], dialect: Dialect) -> TransactionKind:
    if verb == "BEGIN" and dialect == "mysql" and more[:2] == ["not", "atomic"]:
        return "write"  # a program
    if verb == "BEGIN" or (verb == "START" and more[:1] == ["transaction"]):
        return "begin"
    if verb in ("COMMIT", "END") and more[:1] != ["prepared"]:
        return "commit"
    if verb in ("ROLLBACK", "ABORT"):
        back_to = "to" in more[:3] or more[:1] == ["prepared"]
        return "session" if back_to else "rollback"
    if verb in _WRITES:
        return "write"
    return "read" if verb in _READS else "session"


def _read_autocommit(cursor: TokenCursor) -> bool | None:
    """Return the value to which a MySQL SET sets autocommit; a user variable may have the same name."""
    setting, before = None, ("", "")
    while not cursor.over:
        word = cursor.word
        cursor.advance()
        if word == "autocommit" and (before[1] != "@" or before[0] == "@"):
            cursor.skip(":")
            if cursor.skip("="):
                setting = cursor.token.text.strip("'\"").upper() in ("1", "ON", "TRUE")
        before = (before[1], word)
    return setting


def _shorten(text: str, dialect: Dialect) -> str:
    """Return the beginning of a statement, without comments and string contents."""
    parts: list[str] = []
    size = 0
    for kind, at, end in split_pieces(text, dialect):
        part = _BLANK.get(kind) or text[at : min(end, at + 2 * TEXT_KEPT)]
        parts.append(part)
        size += len(part)
        if size >= 2 * TEXT_KEPT:
            break
    return " ".join("".join(parts).split())[:TEXT_KEPT]
