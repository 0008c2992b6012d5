"""`-k EXPR`: words joined by and, or, not, each looked for in the names of a trial, as pytest's users know it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from holdfast.errors import UsageError

_TOKEN = re.compile(r"""\s*(?:(?P<sign>[()])|"(?P<double>[^"]+)"|'(?P<single>[^']+)'|(?P<word>[^\s()"']+))""")
_OPERATORS = ("and", "or", "not")

Words = Sequence[str]
Matcher = Callable[[Words], bool]


def matcher(expression: str) -> Matcher:
    """Whether names fit an expression. A word fits if it is part of a name, whatever its case."""
    parser = _Parser(expression)
    found = parser.either()
    if parser.rest:
        raise parser.wrong(f"found {parser.rest[0][1]!r} after the end of it")
    return found


class _Parser:
    """Reads tokens from the left: (kind, text)."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.rest: list[tuple[str, str]] = []
        at, text = 0, expression.rstrip()
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise self.wrong("a quote is not closed")
            at = token.end()
            word = token["word"]
            sign = token["sign"] or (word if word in _OPERATORS else None)
            self.rest.append(("sign", sign) if sign else ("word", word or token["double"] or token["single"]))

    def wrong(self, why: str) -> UsageError:
        hint = "write names or parts of them, with and, or, not and parentheses; text with spaces in quotes"
        return UsageError(f"-k {self.expression!r} cannot be read: {why}", hint=hint)

    def either(self) -> Matcher:
        found = self.both()
        while self._takes("or"):
            found = _either(found, self.both())
        return found

    def both(self) -> Matcher:
        found = self.single()
        while self._takes("and"):
            found = _both(found, self.single())
        return found

    def single(self) -> Matcher:
        if self._takes("not"):
            return _neither(self.single())
        if self._takes("("):
            found = self.either()
            if not self._takes(")"):
                raise self.wrong("a parenthesis is not closed")
            return found
        if not self.rest or self.rest[0][0] != "word":
            raise self.wrong(f"expected a name, found {self.rest[0][1]!r}" if self.rest else "a name is missing")
        return _word(self.rest.pop(0)[1])

    def _takes(self, sign: str) -> bool:
        if self.rest and self.rest[0] == ("sign", sign):
            self.rest.pop(0)
            return True
        return False


def _word(word: str) -> Matcher:
    folded = word.casefold()
    return lambda names: any(folded in name.casefold() for name in names)


def _neither(inner: Matcher) -> Matcher:
    return lambda names: not inner(names)


def _both(left: Matcher, right: Matcher) -> Matcher:
    return lambda names: left(names) and right(names)


def _either(left: Matcher, right: Matcher) -> Matcher:
    return lambda names: left(names) or right(names)
