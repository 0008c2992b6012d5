"""The effect of SQL text on a transaction, as far as its words show: a function that writes is invisible."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from holdfast.sqltext.lexer import Dialect, pieces
from holdfast.sqltext.statement_cursor import statements
from holdfast.sqltext.token_cursor import TokenCursor
from holdfast.sqltext.writes import writes_of

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


def transaction_statements(sql: str, dialect: Dialect) -> tuple[TransactionStatement, ...]:
    """The statements of one message, in order."""
    return _remembered(sql, dialect) if len(sql) <= _REMEMBERED else _read(sql, dialect)


def _read(sql: str, dialect: Dialect) -> tuple[TransactionStatement, ...]:
    read = (_statement(text, dialect) for text in statements(sql, dialect))
    return tuple(statement for statement in read if statement is not None)


_remembered = lru_cache(512)(_read)


def _statement(text: str, dialect: Dialect) -> TransactionStatement | None:
    """The effect of one statement; None if it contains no word."""
    cursor = TokenCursor(text, dialect)
    while not cursor.over and cursor.token.kind != "word":
        cursor.step()
    if cursor.over:
        return None
    verb = cursor.word.upper()
    cursor.step()
    more = [*islice(cursor.words(), 4)] if verb in _LOOKED_AT else []
    autocommit = _autocommit(cursor) if dialect == "mysql" and verb == "SET" else None
    writes = writes_of(text, dialect) if verb in _WRITES or verb in _READS else ()
    kind = "write" if writes else _kind(verb, more, dialect)
    table = writes[0].written if writes else ""
    ends = dialect == "mysql" and verb in _DEFINING and "temporary" not in more
    return TransactionStatement(kind, verb, table, _shorten(text, dialect), ends, autocommit)


def _kind(verb: str, more: list[str], dialect: Dialect) -> TransactionKind:
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


def _autocommit(cursor: TokenCursor) -> bool | None:
    """The value to which a MySQL SET sets autocommit; a user variable may have the same name."""
    setting, before = None, ("", "")
    while not cursor.over:
        word = cursor.word
        cursor.step()
        if word == "autocommit" and (before[1] != "@" or before[0] == "@"):
            cursor.skip(":")
            if cursor.skip("="):
                setting = cursor.token.text.strip("'\"").upper() in ("1", "ON", "TRUE")
        before = (before[1], word)
    return setting


def _shorten(text: str, dialect: Dialect) -> str:
    """The beginning of a statement, without comments and string contents."""
    parts: list[str] = []
    size = 0
    for kind, at, end in pieces(text, dialect):
        part = _BLANK.get(kind) or text[at : min(end, at + 2 * TEXT_KEPT)]
        parts.append(part)
        size += len(part)
        if size >= 2 * TEXT_KEPT:
            break
    return " ".join("".join(parts).split())[:TEXT_KEPT]
