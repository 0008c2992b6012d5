"""Walks over the tokens of SQL, token by token and statement by statement."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from holdfast.sqltext.lexer import SPACE, Dialect, Token, read_piece, tokenize

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
        """Skip these words, as far as they are here; returns whether the first one was."""
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
        """Skip past the next such word; returns whether there is one."""
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


_SPACE = re.compile(rf"[{SPACE}]*")
_PROGRAM = re.compile(r"create\s[^;]{0,300}?\b(?:function|procedure|trigger|event|package)\b", re.IGNORECASE)
"""Statements whose body may contain semicolons."""
_BODY_MARK = re.compile(r"\b(?:begin|case|end)\b", re.IGNORECASE)
_ATOMIC = re.compile(r"\s+atomic\b", re.IGNORECASE)
_END_OF = re.compile(r"\s+(?:(?P<case>case)|if|loop|while|repeat|for)\b", re.IGNORECASE)


class StatementCursor:
    """A position in SQL text that only moves forward, which keeps splitting linear."""

    def __init__(self, sql: str, dialect: Dialect) -> None:
        self.sql = sql
        self.dialect = dialect
        self.at = 0
        self.delimiter = ";"
        self._code_end = 0
        """Up to here there is neither a literal nor a comment."""
        self._opened = False
        """Whether the position is inside a comment that MySQL executes."""
        self._depth = 0
        self._end_case = -1
        """The position of the CASE of an END CASE: it opens nothing."""

    def skip_blank(self) -> bool:
        """Skip space and comments; returns whether anything is left."""
        while True:
            self.at = _SPACE.match(self.sql, self.at).end()  # type: ignore[union-attr]  # matches any text
            if self.at >= len(self.sql):
                return False
            if self.at < self._code_end:
                return True
            here = read_piece(self.sql, self.dialect, self.at, self._opened)
            if here.kind != "comment":
                return True
            self.at = here.end

    def skip_statement(self) -> int:
        """Return the end of the statement that begins here; skips its delimiter."""
        program = self.delimiter == ";" and _PROGRAM.match(self.sql, self.at) is not None
        self._depth = 0
        while self.at < len(self.sql):
            code, end = self._read_piece()
            delimiter_end = self._find_delimiter(end, program) if code else -1
            if delimiter_end >= 0:
                self.at = delimiter_end + len(self.delimiter)
                return delimiter_end
            self.at = end
        return self.at

    def _read_piece(self) -> tuple[bool, int]:
        """Whether the current piece is code, and where it ends."""
        if self.at >= self._code_end:
            here = read_piece(self.sql, self.dialect, self.at, self._opened)
            if here.kind != "code":
                self._opened = here.kind == "open" or (self._opened and here.kind != "close")
                return False, here.end
            self._code_end = here.end
        return True, self._code_end

    def _find_delimiter(self, end: int, program: bool) -> int:
        """Return where the statement ends in this code; -1 if it continues."""
        delimiter_at = self.sql.find(self.delimiter, self.at, end)
        if not program:
            return delimiter_at
        at = self.at
        while True:
            self._count_depth(at, end if delimiter_at < 0 else delimiter_at)
            if delimiter_at < 0 or not self._depth:
                return delimiter_at
            at = delimiter_at + 1
            delimiter_at = self.sql.find(self.delimiter, at, end)

    def _count_depth(self, at: int, end: int) -> None:
        """Count BEGIN, CASE and END of a body."""
        for mark in _BODY_MARK.finditer(self.sql, at, end):
            word = mark[0].lower()
            if word == "begin":
                self._depth += self.dialect == "mysql" or _ATOMIC.match(self.sql, mark.end()) is not None
            elif word == "case":
                self._depth += bool(self._depth) and mark.start() != self._end_case
            elif self._depth:
                of = _END_OF.match(self.sql, mark.end()) if self.dialect == "mysql" else None
                self._end_case = of.start("case") if of else -1
                self._depth -= of is None or self._end_case >= 0


def split_statements(sql: str, dialect: Dialect) -> Iterator[str]:
    """Yield the statements of one message to a server, without surrounding white space."""
    cursor = StatementCursor(sql, dialect)
    while cursor.skip_blank():
        start = cursor.at
        if text := sql[start : cursor.skip_statement()].strip(SPACE):
            yield text
