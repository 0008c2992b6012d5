"""Reads the SQL of PostgreSQL, MySQL and MariaDB: its tokens, a cursor over them, and the names of tables.

Every character belongs to exactly one token, and the lexer runs in linear time on any input. An unclosed literal or
comment extends to the end of the text. The lexer does not know session settings: it assumes standard strings in
PostgreSQL and backslash escapes in MySQL. Double quotes in MySQL are a string; callers that expect a name accept it
as one, because ANSI_QUOTES makes it a name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
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


_SILENT = frozenset(("space", "comment", "open", "close"))
_END = Token("space", "", -1)
RESERVED = frozenset((
    "as", "by", "case", "do", "end", "for", "from", "group", "having", "in", "into", "join", "limit", "not", "on", "or",
    "order", "returning", "select", "set", "then", "union", "using", "values", "when", "where", "with",
))  # fmt: skip
"""Words that may follow where a name is expected, and are names only in quotes."""


class TokenCursor:
    """`token` is the current token, `word` its text: a word in lower case, a sign unchanged, anything else empty."""

    def __init__(self, sql: str, dialect: Dialect) -> None:
        self.sql = sql
        self.dialect = dialect
        self._tokens: Iterator[Token] = tokenize(sql, dialect)
        self.token = _END
        self.word = ""
        self.advance()

    @property
    def over(self) -> bool:
        return self.token is _END

    def advance(self) -> None:
        """Go to the next token."""
        for token in self._tokens:
            kind = token.kind
            if kind not in _SILENT:
                self.token = token
                self.word = token.text.lower() if kind == "word" else token.text if kind == "sign" else ""
                return
        self.token, self.word = _END, ""

    def read_words(self) -> Iterator[str]:
        """Yield the current word and those that follow; empty for literals, quoted names and numbers."""
        while not self.over:
            yield self.word
            self.advance()

    def skip(self, *words: str) -> bool:
        """Skip these words, as far as they are here; return whether the first one was."""
        is_here = self.word == words[0]
        for word in words:
            if self.word != word:
                break
            self.advance()
        return is_here

    def skip_all(self, words: Collection[str]) -> None:
        """Skip any of these."""
        while self.word in words and not self.over:
            self.advance()

    def skip_to(self, word: str) -> bool:
        """Skip past the next such word; return whether there is one."""
        while not self.over:
            if self.skip(word):
                return True
            self.advance()
        return False

    def read_name(self) -> tuple[str, ...]:
        """Read the name here, in up to three parts as written; empty if there is none."""
        parts: list[str] = []
        while self._is_name() and (parts or self.word not in RESERVED):
            parts.append(self.token.text)
            self.advance()
            if len(parts) == 3 or not self.skip("."):
                break
        return tuple(parts)

    def _is_name(self) -> bool:
        kind, text = self.token.kind, self.token.text
        return kind in ("word", "name") or (kind == "string" and self.dialect == "mysql" and text[0] == '"')


def unquote_name(part: str) -> str:
    """Return a part of a name without its quotes."""
    quoted = part[2:] if part[:2] in ("U&", "u&") and part[2:3] == '"' else part
    if quoted[:1] not in ('"', "`"):
        return part
    mark = quoted[0]
    inner = quoted[1:-1] if len(quoted) > 1 and quoted[-1] == mark else quoted[1:]
    return inner.replace(mark * 2, mark)


def fold_name(part: str) -> str:
    """Return a part of a name for comparison: without quotes, or in lower case if it has none."""
    bare = unquote_name(part)
    return bare.lower() if bare is part else bare


_QUOTED_PART = re.compile(r'"(?:[^"]|"")*"')


def format_name(*parts: str) -> str:
    """Return a table as people write it, with its schema; a part that contains a dot is quoted."""
    return ".".join(map(quote_part, parts))


def quote_part(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if "." in name else name


def quote_name(name: str, dialect: Dialect = "postgres") -> str:
    """Return a name as SQL text."""
    sign = '"' if dialect == "postgres" else "`"
    return sign + name.replace(sign, sign * 2) + sign


def is_covered(allowed: Iterable[str], name: str, default: str) -> bool:
    """Return whether one of the patterns matches the table.

    A pattern without a schema matches tables of the default schema and tables without one. A table of another
    database has one part more, and the pattern needs as many.
    """
    # A pattern must not match more than its author meant: `orders` is the table of the default schema and not one of
    # any schema, and a pattern with a schema needs as many parts as the name has.
    bare = name.removeprefix(f"{default}.") if default else name
    patterns = [one.lower() for one in allowed]
    if any(fnmatchcase(name.lower(), one) for one in patterns if 0 < count_qualifiers(name) <= count_qualifiers(one)):
        return True
    return not count_qualifiers(bare) and any(
        fnmatchcase(bare.lower(), one) for one in patterns if not count_qualifiers(one)
    )


def count_qualifiers(name: str) -> int:
    """Return the number of parts before the table: its schema, its database."""
    return _QUOTED_PART.sub("", name).count(".")
