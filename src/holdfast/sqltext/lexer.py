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
_TAG = rf"\$(?:[{_LETTER}][0-9{_LETTER}]*)?\$"
_RUN = "{0,1000}"
"""Repetitions of a group that are matched together: `re` keeps a record of each, 300 bytes, until the match ends.

Possessive groups would keep none, but Python before 3.11.5 matches them wrongly."""
_GAP = re.compile(rf"(?:[{SPACE}]+|--[^\n\r]*(?=[\n\r])){_RUN}")
"""May separate the parts of an escaped string of PostgreSQL, if it has a line break."""

_POSTGRES = (
    r"(?P<comment>--[^\n\r]*)|(?P<nested>/\*)"
    r"|(?P<escaped>[eE]')|(?P<plain>(?:[uU]&|[bBxXnN])?')"
    rf"|(?P<string>(?P<tag>{_TAG})(?:.*?(?:(?P=tag)|\Z)))"
    r"|(?P<double>(?:[uU]&)?\")"
    r"|(?P<code>(?:"
    rf"(?![eEbBxXnN]'|[uU]&['\"])[{_LETTER}][\w${_OTHER}]*|\d\w*(?:\.\d\w*)*"
    rf"|[^\w'\"$/\-\n{_OTHER}]+|-(?!-)|/(?!\*)|\$(?!(?:[{_LETTER}][0-9{_LETTER}]*)?\$)"
    rf"){_RUN}\n*)"
)
_MYSQL = (
    r"(?P<open>/\*M?!\d*)"
    r"|(?P<comment>/\*.*?(?:\*/|\Z)|--(?=[\x00-\x20\x7f]|\Z)[^\n]*|\#[^\n]*)"
    r"|(?P<escaped>')|(?P<escaped_double>\")|(?P<backtick>`)"
    rf"|(?P<code>(?:[^'\"`\#/*\-\n]+|-(?!-(?:[\x00-\x20\x7f]|\Z))|/(?!\*)|%s){_RUN}\n*)"
)
"""`code` is words, numbers, signs and space, at most to the end of the line; `tokens` takes it apart."""
_PIECE: dict[Dialect, re.Pattern[str]] = {
    "postgres": re.compile(_POSTGRES, re.DOTALL),
    "mysql": re.compile(_MYSQL % r"\*", re.DOTALL),
}
_OPENED = re.compile(r"(?P<close>\*/)|" + _MYSQL % r"\*(?!/)", re.DOTALL)
"""The same inside of a comment that MySQL runs."""
_QUOTED: dict[str, tuple[TokenKind, re.Pattern[str]]] = {
    "plain": ("string", re.compile(rf"(?:[^']+|''){_RUN}")),
    "escaped": ("string", re.compile(rf"(?:[^'\\]+|''|\\.?){_RUN}", re.DOTALL)),
    "escaped_double": ("string", re.compile(rf"(?:[^\"\\]+|\"\"|\\.?){_RUN}", re.DOTALL)),
    "double": ("name", re.compile(rf"(?:[^\"]+|\"\"){_RUN}")),
    "backtick": ("name", re.compile(rf"(?:[^`]+|``){_RUN}")),
}
"""By the group that found an opening quote: what it begins, and what may follow before the closing one."""
_NUMBER = r"\d+(?:\.\d+|(?!\.\d))(?:[eE][+-]?\d+|(?![eE][+-]?\d))"
"""Of MySQL. An optional part that is there must be taken, or `1.5x` would begin with the number 1."""
_SPACE = rf"(?P<space>[{SPACE}]+)"
_DETAIL: dict[Dialect, re.Pattern[str]] = {
    "postgres": re.compile(
        rf"{_SPACE}|(?P<word>[{_LETTER}][\w${_OTHER}]*)|(?P<number>\d\w*(?:\.\d\w*)*)|(?P<sign>.)", re.DOTALL
    ),
    "mysql": re.compile(
        rf"{_SPACE}|(?P<number>{_NUMBER}(?![\w${_OTHER}]))|(?P<word>[\w${_OTHER}]+)|(?P<sign>.)", re.DOTALL
    ),
}
_LINE_BREAK = re.compile(r"[\n\r]")
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
    if kind in _QUOTED:
        return SqlPiece(_QUOTED[kind][0], _quoted_end(sql, found.end(), kind, continues=found[0] in ("e'", "E'")))
    return SqlPiece(kind, found.end())


def pieces(sql: str, dialect: Dialect) -> Iterator[tuple[str, int, int]]:
    """All of the text, in order: kind, start and end."""
    at, size, opened = 0, len(sql), False
    while at < size:
        kind, end = piece(sql, dialect, at, opened)
        opened = kind == "open" or (opened and kind != "close")
        yield kind, at, end
        at = end


def _quoted_end(sql: str, at: int, group: str, continues: bool) -> int:
    """Where the literal or name ends whose opening quote ends here. `continues`: it may go on behind a line break."""
    _, content = _QUOTED[group]
    # Quotes are doubled or escaped inside, which the pattern of the content covers, so the next quote ends the literal.
    # An E'' string of PostgreSQL continues after white space with a line break and another quote.
    while True:
        at = _run_end(content, sql, at)
        if at == len(sql):
            return at
        at += 1  # the closing quote: nothing else ends the content
        gap = _run_end(_GAP, sql, at) if continues else at
        if gap == at or not sql.startswith("'", gap) or not _LINE_BREAK.search(sql, at, gap):
            return at
        at = gap + 1


def _run_end(pattern: re.Pattern[str], sql: str, at: int) -> int:
    """Where a pattern that ends in a run no longer matches."""
    while (found := pattern.match(sql, at)) is not None and found.end() > at:
        at = found.end()
    return at


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
