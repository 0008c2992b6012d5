"""A TokenCursor: the tokens of one statement that mean something, one after the other, read no further than asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from holdfast.sqltext.lexer import Dialect, Token, tokens

_SILENT = frozenset(("space", "comment", "open", "close"))
_END = Token("space", "", -1)
RESERVED = frozenset((
    "as", "by", "case", "do", "end", "for", "from", "group", "having", "in", "into", "join", "limit", "not", "on", "or",
    "order", "returning", "select", "set", "then", "union", "using", "values", "when", "where", "with",
))  # fmt: skip
"""Words that may come where a name is expected, and are names only in quotes."""


class TokenCursor:
    """`token` is where we are, `word` its text: of a word in lower case, of a sign as it is, of all else empty."""

    def __init__(self, sql: str, dialect: Dialect) -> None:
        self.sql = sql
        self.dialect = dialect
        self._tokens: Iterator[Token] = tokens(sql, dialect)
        self.token = _END
        self.word = ""
        self.step()

    @property
    def over(self) -> bool:
        return self.token is _END

    def step(self) -> None:
        """Goes to the next token."""
        for token in self._tokens:
            kind = token.kind
            if kind not in _SILENT:
                self.token = token
                self.word = token.text.lower() if kind == "word" else token.text if kind == "sign" else ""
                return
        self.token, self.word = _END, ""

    def words(self) -> Iterator[str]:
        """The word here and those that follow; empty ones stand for literals, quoted names and numbers."""
        while not self.over:
            yield self.word
            self.step()

    def skip(self, *words: str) -> bool:
        """Goes past these words, as far as they are here; whether the first one is."""
        found = self.word == words[0]
        for word in words:
            if self.word != word:
                break
            self.step()
        return found

    def skip_all(self, words: Collection[str]) -> None:
        """Goes past any of these."""
        while self.word in words and not self.over:
            self.step()

    def skip_to(self, word: str) -> bool:
        """Goes past the next such word; whether there is one."""
        while not self.over:
            if self.skip(word):
                return True
            self.step()
        return False

    def name(self) -> tuple[str, ...]:
        """The name that is here, in up to three parts as they are written, and goes past it; empty if there is none."""
        parts: list[str] = []
        while self._names() and (parts or self.word not in RESERVED):
            parts.append(self.token.text)
            self.step()
            if len(parts) == 3 or not self.skip("."):
                break
        return tuple(parts)

    def _names(self) -> bool:
        kind, text = self.token.kind, self.token.text
        return kind in ("word", "name") or (kind == "string" and self.dialect == "mysql" and text[0] == '"')


def spelled(part: str) -> str:
    """A part of a name without its quotes."""
    quoted = part[2:] if part[:2] in ("U&", "u&") and part[2:3] == '"' else part
    if quoted[:1] not in ('"', "`"):
        return part
    mark = quoted[0]
    inner = quoted[1:-1] if len(quoted) > 1 and quoted[-1] == mark else quoted[1:]
    return inner.replace(mark * 2, mark)


def folded(part: str) -> str:
    """A part of a name as it is compared: without quotes, or in lower case where it has none."""
    bare = spelled(part)
    return bare.lower() if bare is part else bare
