"""A TokenCursor: the meaningful tokens of one statement, read one by one and only as far as needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from holdfast.sqltext.lexer import Dialect, Token, tokenize

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
        """Goes to the next token."""
        for token in self._tokens:
            kind = token.kind
            if kind not in _SILENT:
                self.token = token
                self.word = token.text.lower() if kind == "word" else token.text if kind == "sign" else ""
                return
        self.token, self.word = _END, ""

    def read_words(self) -> Iterator[str]:
        """Yields the current word and those that follow; empty for literals, quoted names and numbers."""
        while not self.over:
            yield self.word
            self.advance()

    def skip(self, *words: str) -> bool:
        """Skips these words, as far as they are here; returns whether the first one was."""
        is_here = self.word == words[0]
        for word in words:
            if self.word != word:
                break
            self.advance()
        return is_here

    def skip_all(self, words: Collection[str]) -> None:
        """Skips any of these."""
        while self.word in words and not self.over:
            self.advance()

    def skip_to(self, word: str) -> bool:
        """Skips past the next such word; returns whether there is one."""
        while not self.over:
            if self.skip(word):
                return True
            self.advance()
        return False

    def read_name(self) -> tuple[str, ...]:
        """Reads the name here, in up to three parts as written; empty if there is none."""
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
    """Returns a part of a name without its quotes."""
    quoted = part[2:] if part[:2] in ("U&", "u&") and part[2:3] == '"' else part
    if quoted[:1] not in ('"', "`"):
        return part
    mark = quoted[0]
    inner = quoted[1:-1] if len(quoted) > 1 and quoted[-1] == mark else quoted[1:]
    return inner.replace(mark * 2, mark)


def fold_name(part: str) -> str:
    """Returns a part of a name for comparison: without quotes, or in lower case if it has none."""
    bare = unquote_name(part)
    return bare.lower() if bare is part else bare
