"""The parts of a text that are compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.checks.text.quantities import Fact

_THE = """the a an der die das den dem des ein eine einen einem einer le la les l un une el los las il lo gli i o os
as um uma de het een"""
ARTICLES = frozenset(_THE.split())
DENIES = frozenset({"denies"})
"""Of a phrase with a negation, such as `out of order`: one word only if the other text has a word of its group."""
_LOOSE = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u9fff]) (?=[\u3040-\u30ff\u3400-\u9fff])")


@dataclass(slots=True)
class TextToken:
    """A word, a name, a number or date, or a mark such as a comma."""

    text: str
    key: str
    """What it is compared by; empty if it says nothing by itself."""
    at: int
    """Where it begins in the text."""
    marks: frozenset[str] = frozenset()
    fact: Fact | None = None
    name: bool = False
    weight: float = 1.0
    matched: bool = False
    kin: frozenset[str] = frozenset()
    """Of a word: every group of words that it may stand for."""


def shown(tokens: Sequence[TextToken]) -> str:
    """The words as one reads them: no spaces between Chinese or Japanese signs."""
    return _LOOSE.sub("", " ".join(token.text for token in tokens))


@dataclass(slots=True)
class Sentence:
    """Its tokens, small words and commas included."""

    tokens: list[TextToken] = field(default_factory=list)
    question: bool = False
    numbered: bool = False
    frame: float = 0.0
    """How much of its words, small ones too, the sentence nearest to it has."""

    @property
    def content(self) -> list[TextToken]:
        return [token for token in self.tokens if token.key]
