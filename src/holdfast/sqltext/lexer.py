"""The lexer of SQL text, in the words of PostgreSQL and of MySQL and MariaDB.

Every character is part of one token, so that the texts of all tokens are the source again, and each is looked at a
fixed number of times, whatever is sent: a literal or comment that nobody closes reaches to the end. Settings of a
session that change how text is read are not known here: PostgreSQL's strings are standard ones, MySQL's know
backslashes. In double quotes MySQL has a string; with ANSI_QUOTES it is a name, and whoever expects a name takes it
for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Dialect = Literal["postgres", "mysql"]
TokenKind = Literal["space", "comment", "open", "close", "string", "name", "word", "number", "sign"]
"""`name`: in quotes. `open` and `close`: around a comment whose text MySQL runs, as `/*!40101` and `*/`."""


class Token(NamedTuple):
    """A piece of the source and where it begins."""

    kind: TokenKind
    text: str
    at: int


SPACE = " \t\n\r\f\v"
"""What both servers take for space, and no more."""
_OTHER = "\x80-\U0010ffff"
"""Beyond ASCII: to both servers a letter, whatever Unicode says."""
_LETTER = f"A-Za-z_{_OTHER}"
_BREAK = r"[ \t\f\v]*+(?:--[^\n\r]*+)?+[\n\r](?:[ \t\f\v\n\r]|--[^\n\r]*+(?=[\n\r]))*+"
"""Between the parts of a string that goes on in another line."""
_ESCAPED = r"'(?:[^'\\]++|''|\\.?)*+'?+"
_TAG = rf"\$(?:[{_LETTER}][0-9{_LETTER}]*+)?+\$"

_POSTGRES = (
    rf"(?P<comment>--[^\n\r]*+)|(?P<nested>/\*)"
    rf"|(?P<string>[eE]{_ESCAPED}(?:{_BREAK}{_ESCAPED})*+|(?:[uU]&|[bBxXnN])?+'(?:[^']++|'')*+'?+"
    rf"|(?P<tag>{_TAG})(?:.*?(?:(?P=tag)|\Z)))"
    r"|(?P<name>(?:[uU]&)?+\"(?:[^\"]++|\"\")*+\"?+)"
    r"|(?P<code>(?:"
    rf"(?![eEbBxXnN]'|[uU]&['\"])[{_LETTER}][\w${_OTHER}]*+|\d(?:\w|\.(?=\d))*+"
    rf"|[^\w'\"$/\-\n{_OTHER}]|-(?!-)|/(?!\*)|\$(?!(?:[{_LETTER}][0-9{_LETTER}]*+)?+\$)"
    r")*+\n*+)"
)
_MYSQL = (
    r"(?P<open>/\*M?!\d*+)"
    r"|(?P<comment>/\*.*?(?:\*/|\Z)|--(?=[\x00-\x20\x7f]|\Z)[^\n]*+|\#[^\n]*+)"
    rf"|(?P<string>{_ESCAPED}|\"(?:[^\"\\]++|\"\"|\\.?)*+\"?+)"
    r"|(?P<name>`(?:[^`]++|``)*+`?+)"
    r"|(?P<code>(?:[^'\"`\#/*\-\n]|-(?!-(?:[\x00-\x20\x7f]|\Z))|/(?!\*)|%s)*+\n*+)"
)
"""`code` is words, numbers, signs and space up to the end of the line: what in detail matters only where one looks."""
_PIECE: dict[Dialect, re.Pattern[str]] = {
    "postgres": re.compile(_POSTGRES, re.DOTALL),
    "mysql": re.compile(_MYSQL % r"\*", re.DOTALL),
}
_OPENED = re.compile(r"(?P<close>\*/)|" + _MYSQL % r"\*(?!/)", re.DOTALL)
"""The same inside of a comment that MySQL runs."""
_SPACE = rf"(?P<space>[{SPACE}]++)"
_DETAIL: dict[Dialect, re.Pattern[str]] = {
    "postgres": re.compile(
        rf"{_SPACE}|(?P<word>[{_LETTER}][\w${_OTHER}]*+)|(?P<number>\d(?:\w|\.(?=\d))*+)|(?P<sign>.)", re.DOTALL
    ),
    "mysql": re.compile(
        rf"{_SPACE}|(?P<number>\d++(?:\.\d++)?+(?:[eE][+-]?\d++)?+(?![\w${_OTHER}]))|(?P<word>[\w${_OTHER}]++)|(?P<sign>.)",
        re.DOTALL,
    ),
}
_COMMENT_MARK = re.compile(r"/\*|\*/")


class SqlPiece(NamedTuple):
    """A literal, a comment, a quoted name, or `code`: all else in a line."""

    kind: str
    end: int


def piece(sql: str, dialect: Dialect, at: int, opened: bool) -> SqlPiece:
    """What begins here; there must be something. Between pieces no word is torn apart.

    `opened`: inside of a comment that MySQL runs; the last `open` or `close` tells.
    """
    found = (_OPENED if opened else _PIECE[dialect]).match(sql, at)
    assert found is not None  # matches any text
    kind = found.lastgroup or ""
    if kind == "nested":
        return SqlPiece("comment", _comment_end(sql, found.end()))
    return SqlPiece(kind, found.end())


def pieces(sql: str, dialect: Dialect) -> Iterator[tuple[str, int, int]]:
    """All of the text, in order: kind, start and end."""
    at, size, opened = 0, len(sql), False
    while at < size:
        kind, end = piece(sql, dialect, at, opened)
        opened = kind == "open" or (opened and kind != "close")
        yield kind, at, end
        at = end


def _comment_end(sql: str, at: int) -> int:
    """Where PostgreSQL ends a comment that may hold others."""
    depth = 1
    for mark in _COMMENT_MARK.finditer(sql, at):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(sql)


def tokens(sql: str, dialect: Dialect) -> Iterator[Token]:
    """All of the text, in order."""
    detail = _DETAIL[dialect]
    for kind, at, end in pieces(sql, dialect):
        if kind == "code":
            for found in detail.finditer(sql, at, end):
                yield Token(found.lastgroup, found[0], found.start())  # type: ignore[arg-type]  # a group is a kind
        else:
            yield Token(kind, sql[at:end], at)  # type: ignore[arg-type]  # the same
