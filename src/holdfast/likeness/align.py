"""Aligns two texts: their statements, which of them correspond, and how much of each the other text covers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.likeness.blocks import Line
from holdfast.likeness.tables import Language, fold
from holdfast.likeness.tokens import Clause, TextToken, read_clauses

_COMMON = 60
"""A word that occurs in this many statements does not help to match them."""
_NEAREST = 3
"""How many statements of the other text are compared with one statement."""
_ELSEWHERE = 0.5
"""Weight of a word that the other text has in another statement."""
_LIGHT = 0.25
"""Weight of a heading, and of the words that introduce a list."""
_COURTESY_WORDS = 14
_ALONE = 0.5
_MOST_PARTNERS = 30
_MOST_ALONE = 100
"""Maximum number of unmatched words that are compared by meaning."""
_FORMS = ("word", "name")
_PREFIX = 5
_PREFIX_SHARE = 0.6


@dataclass(slots=True, eq=False)
class Statement:
    """A sentence, a list item or a row, as clauses."""

    line: Line
    clauses: list[Clause]
    keys: dict[str, float] = field(default_factory=dict)
    """The weight of each key of its content."""

    @property
    def tokens(self) -> list[TextToken]:
        return [token for clause in self.clauses for token in clause.tokens]

    @property
    def content(self) -> list[TextToken]:
        return [token for token in self.tokens if token.key]

    @property
    def is_light(self) -> bool:
        return self.line.kind in ("heading", "lead")

    @property
    def weight(self) -> float:
        return sum(self.keys.values())


def read_statements(lines: Iterable[Line], lang: Language) -> list[Statement]:
    """Return the statements of a text, without greetings, thanks and offers of help."""
    unique = {(line.text, line.of): line for line in lines}.values()  # A repeated statement counts once.
    statements = (Statement(line, read_clauses(line.text, lang)) for line in unique)
    return [one for one in statements if one.content and not _is_courtesy(one, lang)]


def set_weights(statements: Sequence[Statement]) -> None:
    """Set the keys; call it once the names are known."""
    for one in statements:
        one.keys = {token.key: token.weight for token in one.content}


def join_forms(ours: Sequence[Statement], theirs: Sequence[Statement]) -> None:
    """Give one key to words of both texts that begin alike: `refund` and `refundable`, `incluye` and `incluido`."""
    # Inflection changes the end of a word, so candidates are looked up by their beginning, and only those few are
    # compared.
    known: dict[str, list[str]] = defaultdict(list)
    keys = dict.fromkeys(token.key for one in ours for token in one.content if token.kind in _FORMS)
    for key in keys:
        known[key[:_PREFIX]].append(key)
    for token in (token for one in theirs for token in one.content if token.kind in _FORMS and token.key not in keys):
        token.key = next(
            (key for key in known.get(token.key[:_PREFIX], ()) if has_same_start(token.key, key)), token.key
        )


Nearness = Callable[[str, str], bool]


def join_meanings(ours: Sequence[Statement], theirs: Sequence[Statement], near: Nearness) -> None:
    """Give one key to unmatched words with similar meanings."""
    # Every pair is compared, so both sides are limited. Only words without an equal in the other text take part: a
    # shared word needs no synonym, and must not become one of another word.
    here, there = ({t.key: t for one in side for t in one.content if t.kind == "word"} for side in (ours, theirs))
    alone = [token for key, token in here.items() if key not in there][:_MOST_ALONE]
    for key, token in [(key, token) for key, token in there.items() if key not in here][:_MOST_ALONE]:
        shared_key = next((other.key for other in alone if near(other.text, token.text)), None)
        for one in (one for side in theirs for one in side.content if shared_key and one.key == key):
            one.key = shared_key or key


def _is_courtesy(one: Statement, lang: Language) -> bool:
    """Return whether a statement begins like a greeting, thanks or an offer of help."""
    text = fold(one.line.text).lstrip("¡¿*_ ")
    spaced = " ".join(text.replace(",", " ").replace("!", " ").split()) + " "
    begins = any(text.startswith(p) if not p.isascii() else spaced.startswith(f"{p} ") for p in lang.courtesy)
    return begins and _is_small_talk(one)


def _is_small_talk(one: Statement) -> bool:
    return len(one.tokens) <= _COURTESY_WORDS and not any(token.fact or token.kind == "code" for token in one.tokens)


def drop_polite(statements: list[Statement], covered: list[StatementCoverage], lang: Language) -> bool:
    """Remove polite phrases that only one text has: `I appreciate your patience.`"""
    # A phrase that both texts have stays: it costs nothing, and dropping everything would leave nothing to compare.
    dropped = [n for n, one in enumerate(statements) if covered[n].share < _ALONE and _is_polite(one, lang)]
    if len(dropped) == len(statements):
        return False
    for n in reversed(dropped):
        del statements[n]
    return bool(dropped)


def _is_polite(one: Statement, lang: Language) -> bool:
    text = fold(one.line.text)
    polite = any(word in (text if lang.known else re.findall(r"\w+", text)) for word in lang.polite)
    return polite and _is_small_talk(one) and not any("not" in token.marks for token in one.tokens)


COMPARABLE = {
    **{kind: (kind,) for kind in ("date", "code", "name")},
    "number": ("number", "clock"),
    "clock": ("clock", "number"),
}
"""For each kind of fact, the kinds that may mean the same."""


class Side:
    """One text with an index from words to its statements."""

    def __init__(self, statements: list[Statement]) -> None:
        self.statements = statements
        self.places: dict[str, list[int]] = defaultdict(list)
        for n, one in enumerate(statements):
            for key in one.keys:
                self.places[key].append(n)
        self.clauses = [
            (clause, one, n) for n, one in enumerate(statements) for clause in one.clauses if clause.content
        ]
        self.by_kind: dict[str, list[tuple[TextToken, int]]] = defaultdict(list)
        self.by_key: dict[str, list[tuple[TextToken, int]]] = defaultdict(list)
        for n, one in enumerate(statements):
            for token in one.content:
                self.by_kind[token.kind].append((token, n))
                self.by_key[token.key].append((token, n))

        self._names: dict[str, list[tuple[TextToken, int]]] = defaultdict(list)
        for name, n in self.by_kind["name"]:
            self._names[name.key[:_PREFIX]].append((name, n))
        self._partners: dict[tuple[str, str], list[tuple[TextToken, int]]] = {}

    def find_partners(self, token: TextToken) -> list[tuple[TextToken, int]]:
        """Return the tokens of this text with the same meaning, and their positions."""
        key = (token.kind, token.key)
        if key not in self._partners:
            # An equal key decides. Only without one does the slower comparison of facts (units, readings) and names
            # run; results are cached, since the same number often occurs many times.
            exact = self.by_key.get(token.key, [])
            matches = exact or [place for place in self._iter_candidates(token) if is_same_fact(token, place[0])]
            self._partners[key] = matches[:_MOST_PARTNERS]
        return self._partners[key]

    def _iter_candidates(self, token: TextToken) -> Iterable[tuple[TextToken, int]]:
        if token.fact is None:
            return self._names.get(token.key[:_PREFIX], ()) if token.kind == "name" else ()
        return (place for kind in COMPARABLE[token.kind] for place in self.by_kind.get(kind, ()))

    def find_nearest(self, keys: dict[str, float]) -> list[tuple[float, int]]:
        """Return the statements that share most with these words: similarity and index."""
        shared: dict[int, float] = defaultdict(float)
        # By an index from words to statements: only statements that share a word are compared, and a word that many of
        # them have does not distinguish them.
        for key, weight in keys.items():
            places = self.places.get(key, ())
            if len(places) <= _COMMON:
                for n in places:
                    shared[n] += weight
        total = sum(keys.values())
        ranked = sorted(
            ((2 * same / (total + self.statements[n].weight), -n) for n, same in shared.items()), reverse=True
        )
        return [(likeness, -n) for likeness, n in ranked[:_NEAREST]]


@dataclass(slots=True)
class StatementCoverage:
    """How much of a statement the other text says, and where."""

    share: float
    nearest: list[tuple[float, int]]
    left: list[TextToken]
    """Tokens without a counterpart."""


def measure_coverage(one: Statement, other: Side) -> StatementCoverage:
    """Return how much of the statement the other text says, mainly in the two statements most similar to it."""
    nearest = other.find_nearest(one.keys)
    # Two, because one sentence may have become two. A word in any other statement counts less: it may be about
    # something else.
    near = frozenset[str]().union(*(other.statements[n].keys for _, n in nearest[:2]))
    weight, uncovered = 0.0, list[TextToken]()
    for token in {token.key: token for token in one.content}.values():
        if token.key in near or (token.fact and other.find_partners(token)):
            weight += token.weight
        elif token.key in other.places:
            weight += _ELSEWHERE * token.weight
        else:
            uncovered.append(token)
    return StatementCoverage(weight / one.weight if one.weight else 1.0, nearest, uncovered)


def is_same_fact(one: TextToken, other: TextToken) -> bool:
    """Return whether two facts, names or codes may mean the same."""
    if one.fact and other.fact:
        return one.fact.is_same(other.fact)
    return one.key == other.key or (one.kind == "name" and has_same_start(one.key, other.key))


def has_same_start(one: str, other: str) -> bool:
    """Return whether two words look like forms of one word: `Japan` and `Japanese`."""
    length = max(len(one), len(other))
    size = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return size >= _PREFIX and size >= _PREFIX_SHARE * length


def compute_covered_share(statements: Sequence[Statement], covered: Sequence[StatementCoverage]) -> float:
    """Return the fraction of a text that the other one says, by weight."""
    weights = [one.weight * (_LIGHT if one.is_light else 1.0) for one in statements]
    total = sum(weights)
    return sum(w * c.share for w, c in zip(weights, covered, strict=True)) / total if total else 1.0


class Conflict(NamedTuple):
    """One difference between the texts: its kind, and the version of each text."""

    code: str
    expected: str
    actual: str


class TextPair(NamedTuple):
    """Two texts, with how the other text covers each statement."""

    one: Side
    other: Side
    one_covered: list[StatementCoverage]
    other_covered: list[StatementCoverage]

    @property
    def swapped(self) -> TextPair:
        return TextPair(self.other, self.one, self.other_covered, self.one_covered)
