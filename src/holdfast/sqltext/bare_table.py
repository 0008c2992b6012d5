"""Finds tables that MySQL statements name without their database. Only certain cases: no error beats a wrong one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, pairwise

from holdfast.sqltext.lexer import Token, tokenize

_NAMES_FOLLOW = frozenset((".", "@", ":", "{"))
"""After these a word is never a keyword."""
_QUERIES = frozenset(("select", "insert", "replace", "update", "delete", "create", "set", "do", "explain"))
"""Statements in which a SELECT has its tables after FROM and JOIN."""
_OTHERS = frozenset((
    *("alter", "analyze", "call", "commit", "desc", "describe", "drop", "flush", "grant", "load", "lock", "optimize"),
    *("release", "rename", "revoke", "rollback", "savepoint", "show", "start", "truncate", "unlock", "with"),
))  # fmt: skip
"""Statements that change neither the selected database nor the meaning of words; any other may be a USE."""
_PROGRAMS = frozenset(("procedure", "function", "trigger", "event", "package"))
_MODIFIERS = frozenset(("low_priority", "high_priority", "delayed", "quick", "ignore", "or", "replace", "temporary"))
_BEFORE = {
    "insert": ["into"],
    "replace": ["into"],
    "update": [],
    "delete": ["from"],
    "create": ["table"],
    "drop": ["table"],
    "alter": ["table"],
    "truncate": [],
}
"""The words between a statement's first word, with its modifiers, and its table."""
_KEYWORDS = frozenset((
    *_QUERIES, *_OTHERS, *_PROGRAMS, *_MODIFIERS,
    *("begin", "dual", "exists", "from", "if", "into", "join", "lateral", "not", "table", "use", "using", "values"),
))  # fmt: skip
_NAME = re.compile(r"`[^`]+`|(?!seq_)[^\W\d][\w$]*", re.IGNORECASE)
"""MariaDB creates a table for a name such as `seq_1_to_9`."""


def find_bare_table(sql: str) -> str:
    """Return the first table that needs a selected database before one may be selected; empty if there is none."""
    for statement in _split_statements(sql):
        if statement == ["begin"]:
            continue
        first = next((piece for piece in statement if piece != "("), "")
        if (first not in _QUERIES and first not in _OTHERS) or _is_meaning_changed(first, statement):
            return ""
        table = _find_target(first, statement)
        if not table and first in _QUERIES and "with" not in statement:
            table = _find_read_table(statement)
        if table:
            return table.strip("`")
    return ""


def _split_statements(sql: str) -> Iterator[list[str]]:
    """Yield each statement in pieces: keywords in lower case, certain names in backquotes, strings as an empty one.

    A comment that some servers execute is left out; if it may select a database, everything after it is, too.
    """
    statement: list[str] = []
    sometimes = False
    for token in tokenize(sql, "mysql"):
        if token.kind in ("open", "close"):
            sometimes = token.kind == "open"
        elif sometimes:
            if token.text.lower() == "use":
                yield ["use"]
                return
        elif token.text == ";":
            yield from [statement] if statement else ()
            statement = []
        elif token.kind not in ("space", "comment"):
            statement.append(_normalize_token(token, statement[-1:]))
    yield from [statement] if statement else ()


def _normalize_token(token: Token, before: Sequence[str]) -> str:
    if token.kind == "word":
        if before and before[0] in _NAMES_FOLLOW:
            return f"`{token.text}`"
        return token.text.lower() if token.text.lower() in _KEYWORDS else token.text
    return "''" if token.kind == "string" else token.text


def _is_meaning_changed(first: str, statement: Sequence[str]) -> bool:
    """Return whether the statement contains a stored program, or changes how later ones are parsed."""
    if first == "create":
        return not _PROGRAMS.isdisjoint(statement[:10])
    return first == "set" and any("sql_mode" in piece.lower() for piece in statement)


def _find_target(first: str, statement: Sequence[str]) -> str:
    """Return the table that the statement is about."""
    if first == "load":
        at = next((n for n, pair in enumerate(pairwise(statement)) if pair == ("into", "table")), None)
        return "" if at is None else _read_name(statement[at + 2 : at + 4])
    if first not in _BEFORE or statement[0] != first or (first == "delete" and "using" in statement):
        return ""
    rest = list(dropwhile(_MODIFIERS.__contains__, statement[1:20]))
    if rest[: len(_BEFORE[first])] != _BEFORE[first]:
        return ""
    rest = rest[len(_BEFORE[first]) :]
    for words in (["table"], ["if", "not", "exists"], ["if", "exists"]):  # a TRUNCATE may have a TABLE, too
        rest = rest[len(words) :] if rest[: len(words)] == words else rest
    return _read_name(rest)


def _find_read_table(statement: Sequence[str]) -> str:
    """Return a table that a SELECT reads. In each pair of parentheses only the first FROM after it has one."""
    scopes = [""]
    for at, piece in enumerate(statement):
        if piece == "(":
            scopes.append("")
        elif piece == ")" and len(scopes) > 1:
            scopes.pop()
        elif piece == "select":
            scopes[-1] = "select"
        elif (piece == "from" and scopes[-1] == "select") or (piece == "join" and scopes[-1] == "from"):
            scopes[-1] = "from"
            table = _read_name(statement[at + 1 : at + 3])
            if table and statement[at + 2 : at + 3] != ["("]:
                return table
    return ""


def _read_name(rest: Sequence[str]) -> str:
    """Return the next name; empty if it is not complete."""
    name = rest[0] if rest else ""
    if name in _KEYWORDS or not _NAME.fullmatch(name):
        return ""
    return "" if rest[1:2] and rest[1] in (".", "{", "$", "@") else name
