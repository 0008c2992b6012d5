"""A lexer for the SQL of PostgreSQL, MySQL and MariaDB.

Every character belongs to exactly one token, and the lexer runs in linear time on any input. An unclosed literal or
comment extends to the end of the text. The lexer does not know session settings: it assumes standard strings in
PostgreSQL and backslash escapes in MySQL. Double quotes in MySQL are a string; callers that expect a name accept it
as one, because ANSI_QUOTES makes it a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Dialect = Literal["postgres", "mysql"]
TokenKind = Literal["space", "comment", "open", "close", "string", "name", "word", "number", "sign"]
"""`name` is a quoted name. `open` and `close` enclose a comment that MySQL executes: `/*!40101` and `*/`."""


class Token(NamedTuple):
    """A token with its start position."""

    kind: TokenKind
    text: str
    at: int


SPACE = " \t\n\r\f\v"
"""The characters that both servers treat as white space."""
_OTHER = "\x80-\U0010ffff"
"""Non-ASCII characters, which both servers treat as letters."""
_LETTER = f"A-Za-z_{_OTHER}"
_TAG = rf"\$(?:[{_LETTER}][0-9{_LETTER}]*)?\$"
_RUN = "{0,1000}"
"""The most repetitions per match: `re` stores 300 bytes for each until the match ends.

Possessive groups would store none, but Python before 3.11.5 matches them incorrectly."""
_GAP = re.compile(rf"(?:[{SPACE}]+|--[^\n\r]*(?=[\n\r])){_RUN}")
"""Separates the parts of a PostgreSQL E'' string if it contains a line break."""

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
"""`code` is words, numbers, signs and space up to the end of the line; `tokens` splits it."""
_PIECE: dict[Dialect, re.Pattern[str]] = {
    "postgres": re.compile(_POSTGRES, re.DOTALL),
    "mysql": re.compile(_MYSQL % r"\*", re.DOTALL),
}
_OPENED = re.compile(r"(?P<close>\*/)|" + _MYSQL % r"\*(?!/)", re.DOTALL)
"""The pattern inside a comment that MySQL executes."""
_QUOTED: dict[str, tuple[TokenKind, re.Pattern[str]]] = {
    "plain": ("string", re.compile(rf"(?:[^']+|''){_RUN}")),
    "escaped": ("string", re.compile(rf"(?:[^'\\]+|''|\\.?){_RUN}", re.DOTALL)),
    "escaped_double": ("string", re.compile(rf"(?:[^\"\\]+|\"\"|\\.?){_RUN}", re.DOTALL)),
    "double": ("name", re.compile(rf"(?:[^\"]+|\"\"){_RUN}")),
    "backtick": ("name", re.compile(rf"(?:[^`]+|``){_RUN}")),
}
"""By the group that matched an opening quote: the token's kind and the pattern of its content."""
_NUMBER = r"\d+(?:\.\d+|(?!\.\d))(?:[eE][+-]?\d+|(?![eE][+-]?\d))"
"""A number in MySQL. Optional parts must match if present; otherwise `1.5x` would start with the number 1."""
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
    """A literal, a comment, a quoted name, or `code`, which is everything else in a line."""

    kind: str
    end: int


def read_piece(sql: str, dialect: Dialect, at: int, opened: bool) -> SqlPiece:
    """Return the piece that starts at `at`, which must be inside the text. A word never spans two pieces.

    `opened`: `at` is inside a comment that MySQL executes.
    """
    match = (_OPENED if opened else _PIECE[dialect]).match(sql, at)
    assert match is not None  # matches any text
    kind = match.lastgroup or ""
    if kind == "nested":
        return SqlPiece("comment", _find_comment_end(sql, match.end()))
    if kind in _QUOTED:
        return SqlPiece(_QUOTED[kind][0], _find_quoted_end(sql, match.end(), kind, continues=match[0] in ("e'", "E'")))
    return SqlPiece(kind, match.end())


def split_pieces(sql: str, dialect: Dialect) -> Iterator[tuple[str, int, int]]:
    """Yield all pieces of the text in order, as kind, start and end."""
    at, size, opened = 0, len(sql), False
    while at < size:
        kind, end = read_piece(sql, dialect, at, opened)
        opened = kind == "open" or (opened and kind != "close")
        yield kind, at, end
        at = end


def _find_quoted_end(sql: str, at: int, group: str, continues: bool) -> int:
    """Find the end of a literal or name from after its opening quote; `continues` allows a line break in it."""
    _, content = _QUOTED[group]
    # Quotes are doubled or escaped inside, which the pattern of the content covers, so the next quote ends the literal.
    # An E'' string of PostgreSQL continues after white space with a line break and another quote.
    while True:
        at = _find_run_end(content, sql, at)
        if at == len(sql):
            return at
        at += 1  # the closing quote: nothing else ends the content
        gap = _find_run_end(_GAP, sql, at) if continues else at
        if gap == at or not sql.startswith("'", gap) or not _LINE_BREAK.search(sql, at, gap):
            return at
        at = gap + 1


def _find_run_end(pattern: re.Pattern[str], sql: str, at: int) -> int:
    """Return the position where a repeated pattern stops matching."""
    while (match := pattern.match(sql, at)) is not None and match.end() > at:
        at = match.end()
    return at


def _find_comment_end(sql: str, at: int) -> int:
    """Return the end of a PostgreSQL comment, which may contain other comments."""
    depth = 1
    for mark in _COMMENT_MARK.finditer(sql, at):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(sql)


def tokenize(sql: str, dialect: Dialect) -> Iterator[Token]:
    """Yield all tokens of the text in order."""
    detail = _DETAIL[dialect]
    for kind, at, end in split_pieces(sql, dialect):
        if kind == "code":
            for match in detail.finditer(sql, at, end):
                yield Token(match.lastgroup, match[0], match.start())  # type: ignore[arg-type]  # a group is a kind
        else:
            yield Token(kind, sql[at:end], at)  # type: ignore[arg-type]  # the same
