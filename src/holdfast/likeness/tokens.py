"""A line as tokens: facts, words by their stems, and the small words that change a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.likeness.facts import Fact, TextPiece, convert_numerals, find_facts
from holdfast.likeness.tables import SPACELESS, Language, fold, get_stem

_LETTER = r"(?:[^\W\d_]|[\u0300-\u036f\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0951-\u0957\u200c\u200d])"
_SCAN = re.compile(
    r"(?P<ymd>\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|\d{4}\s?年\s?\d{1,2}\s?月\s?\d{1,2}\s?日)"
    r"|(?P<dmy>(?<![\d.])\d{1,2}(?P<mark>[./-])\d{1,2}(?P=mark)(?:\d{4}|\d{2})(?!\d)|(?<![\d.,])\d{1,2}\.\d{1,2}\.(?=\s))"
    r"|(?P<md>\d{1,2}\s?月\s?\d{1,2}\s?日|(?<![\d/.])(?:1[0-2]|0?[1-9])/(?:3[01]|[12]\d|0?[1-9])(?![\d/]))"
    r"|(?P<clock>\d{1,2}(?::\d{2}(?::\d{2})?|\s?h\s?[0-5]\d)(?!\d))"
    r"|(?P<code>https?://[^\s<>\"')]+[^\s<>\"').,!?;:*`]|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|(?<![\w-])--[A-Za-z][\w-]*"
    r"|(?<![\w<€$£%] )(?<![\w<€$£%])[/~][\w.-]+(?:/[\w.*-]*)*"
    r"|[A-Za-z][\w-]*/(?:[\w-]+/)*[\w-]+\.\w{1,5}(?!\w)|[A-Za-z_]\w*/(?=[\s`,;:|)]|$)"
    r"|\d+(?:\.\d+){2,}(?![\d,])|(?<!\d)\d{2,}(?:-\d{2,}){2,}(?!\d)"
    r"|(?<![A-Za-z])(?=[A-Za-z-]{0,40}[\d_])[A-Za-z_][A-Za-z\d_]*(?:[-.][A-Za-z\d_]+)*(?:\(\))?"
    r"|(?<![\w.])[A-Za-z][\w-]+\.[a-z]{2,4}(?![\w.])|[A-Z]?[a-z]+[A-Z][A-Za-z]*)"
    r"|(?P<number>(?<![\w.,])[-+]?\d{1,3}(?:[ ]\d{3})+(?!\d)(?:[.,]\d+)?|(?:(?<![\w)])[-+])?\d+(?:[.,']\d+)*)"
    rf"|(?P<word>{_LETTER}+(?:-{_LETTER}+)*)"
    r"|(?P<unit>R\$|US\$|°[CF]|[$€£¥₹₽%°])"
    r"|(?P<sign>[!<>=]=|[≤≥≠→]|\|\||&&|[.!?;:,。、،؛؟।()<>=+×–—-])"
)
_CONTRACTIONS = (
    (re.compile(r"\b(?:can't|cannot)\b", re.I), "can not"),
    (re.compile(r"\bwon't\b", re.I), "will not"),
    (re.compile(r"n't\b", re.I), " not"),
    (re.compile(r"'ll\b", re.I), " will"),
    (re.compile(r"\b([ap])\.m\.?", re.I), r"\1m"),
    (re.compile(r"(?<=\w)-free\b", re.I), " not"),
)
_JOINTS = frozenset({"and", "if"})
_CLAUSE_ENDS = frozenset(".!?;:,。、،؛؟।()–—")
_PARTICLES = frozenset({"on", "off", "up", "down", "in", "out"})
"""Words with a meaning only at the end of a phrase: `the lid is off`."""
_NO_NAMES = frozenset({"de", "zh", "ja", "ar", "hi"})
"""Languages in which a capital letter does not mark a name."""
_LABEL = 2
"""Maximum number of content words in a label."""
_WEIGHTS = {"number": 1.5, "date": 1.5, "clock": 1.5, "code": 1.5, "name": 1.5}


@dataclass(slots=True, eq=False)
class TextToken:
    """One word, fact or sign."""

    text: str
    kind: str
    """word, name, code, number, date, clock; mark and stop have no content of their own; sign is punctuation."""
    key: str = ""
    """The key for comparison; empty for a token without content."""
    marks: frozenset[str] = frozenset()
    fact: Fact | None = None
    side: int | None = None
    """The side of a word that has opposites."""
    bound: str = ""
    """`least` or `most` for a number with such a word."""
    label: bool = False
    """Whether it is in the label of its line: `Not covered: the washing machine`."""
    initial: bool = False
    """Whether it begins a sentence, where a capital letter has no meaning."""

    context: dict[str, float] | None = None
    """The words around it, once computed."""

    @property
    def weight(self) -> float:
        return _WEIGHTS.get(self.kind, 1.0)


@dataclass(slots=True, eq=False)
class Clause:
    """A part of a line between two commas or similar signs."""

    tokens: list[TextToken] = field(default_factory=list)

    @property
    def content(self) -> list[TextToken]:
        return [token for token in self.tokens if token.key]

    @property
    def marks(self) -> frozenset[str]:
        return frozenset[str]().union(*(token.marks for token in self.tokens))

    @property
    def is_substantial(self) -> bool:
        """Whether it counts as a separate clause: two words, or one that is negated."""
        return len(self.content) > 1 or bool(self.content and "not" in self.marks)


def read_clauses(text: str, lang: Language) -> list[Clause]:
    """Return the clauses of a line. A clause of a single word joins the next one, or else the previous one."""
    tokens = _read_tokens(text, lang)
    # "Not covered: the washing machine" negates its items, but a sentence with a colon later on does not. Few words
    # before the colon make a label.
    colon = next((n for n, token in enumerate(tokens) if token.text == ":"), 0)
    if sum(bool(token.key) for token in tokens[:colon]) <= _LABEL:
        for token in tokens[:colon]:
            token.label = True
    clauses, current = list[Clause](), Clause()
    for token in tokens:
        # A clause is the reach of a negation. A comma does not always end one ("a, b and c"), so a piece without enough
        # content joins its neighbour.
        if (token.kind == "sign" and token.text in _CLAUSE_ENDS) or token.marks & _JOINTS:
            strong = token.text in ";." or "if" in token.marks
            if current.is_substantial or (strong and "not" in current.marks):
                clauses.append(current)
                current = Clause()
        if token.kind != "sign" or current.tokens:
            current.tokens.append(token)
    if current.is_substantial or not clauses:
        clauses.append(current)
    else:
        clauses[-1].tokens.extend(current.tokens)
    return clauses


def _read_tokens(text: str, lang: Language) -> list[TextToken]:
    text = re.sub(r"[*`\"#~]+|(?<!\w)_+|_+(?!\w)", " ", text)
    if lang.name == "en":
        for pattern, full in _CONTRACTIONS:
            text = pattern.sub(full, text)
    if lang.name in SPACELESS:
        text = convert_numerals(text)
    tokens = list(_mark_tokens(_scan_pieces(text, lang), lang))
    _set_bounds(tokens)
    first = next((token for token in tokens if token.kind != "sign"), None)
    if first is not None:
        first.initial = True
    return tokens


def _scan_pieces(text: str, lang: Language) -> list[TextPiece]:
    """Return the kind and text of everything in a line."""
    pieces = list[TextPiece]()
    for match in _SCAN.finditer(text):
        kind = "dmy" if match.lastgroup == "mark" else str(match.lastgroup)
        if kind != "word":
            pieces.append(TextPiece(kind, match[0]))
        elif lang.known is not None:
            pieces.extend(TextPiece("word", part) for part in _split_run(match[0], lang.known))
        elif fold(match[0]) in lang.numbers:
            pieces.append(TextPiece("word", match[0]))
        else:
            pieces.extend(TextPiece("word", part) for part in match[0].split("-"))
    return pieces


_RUNS = re.compile(r"[A-Za-z]+|[\u30a0-\u30ff]+|.")
_HIRAGANA = re.compile(r"[\u3040-\u309f]")


def _split_run(run: str, known: re.Pattern[str]) -> Iterator[str]:
    """Split a run of characters without spaces: words of the tables, katakana words, and pairs of other characters."""
    # Chinese and Japanese have no spaces, and no dictionary has all words. So known words are cut out first, and what
    # is left between them becomes overlapping pairs: two texts with the same unknown word share its pairs, wherever
    # the cuts are.
    at, rest = 0, ""
    while at <= len(run):
        match = known.match(run, at) or _RUNS.match(run, at)
        single = (
            match is not None and len(match[0]) == 1 and known.match(run, at) is None and not _HIRAGANA.match(match[0])
        )
        if not single and rest:
            yield from [rest[n : n + 2] for n in range(len(rest) - 1)] or [rest]
            rest = ""
        if match is None:
            return
        if single:
            rest += match[0]
        else:
            yield match[0]
        at = match.end()


def _mark_tokens(pieces: list[TextPiece], lang: Language) -> Iterator[TextToken]:
    """Return facts, phrases of the tables, and other words with their keys."""
    words = [fold(piece.text) for piece in pieces]
    facts = find_facts(pieces, words, lang)
    at = 0
    while at < len(pieces):
        piece = pieces[at]
        if at in facts:
            size, fact = facts[at]
            text = " ".join(part.text for part in pieces[at : at + size])
            none = frozenset({"not"}) if fact.kind == "number" and not fact.bare else frozenset[str]()
            yield TextToken(text, fact.kind, fact.display_key, none, fact)
            at += size
            continue
        size, marks = _find_phrase(words, at, lang)
        last = at + 1 == len(words) or pieces[at + 1].kind == "sign"
        if piece.kind == "code":
            yield TextToken(piece.text, "code", words[at].rstrip("()"))
        elif piece.kind in ("sign", "unit"):
            has_content = len(piece.text) > 1 or piece.text in "<>="
            yield TextToken(piece.text, "word" if has_content else "sign", piece.text if has_content else "")
        elif marks and not (last and words[at] in _PARTICLES):
            kind = "stop" if marks <= frozenset({"empty", "and", "past"}) else "mark"
            yield TextToken(" ".join(words[at : at + size]), kind, marks=marks - {"empty"})
        else:
            yield _build_word(piece.text, words[at], lang)
            size = 1
        at += size


def _build_word(text: str, folded: str, lang: Language) -> TextToken:
    base = get_stem(folded, lang.name)
    if lang.name == "ja" and "\u3040" <= text[:1] <= "\u309f" and base not in lang.groups:
        return TextToken(text, "stop")  # endings and particles in hiragana
    if len(base) == 1 and base.isascii() and text.islower():
        return TextToken(text, "stop")
    marks = frozenset({"not"}) if base in lang.free else frozenset[str]()
    return TextToken(text, "word", lang.groups.get(base, base), marks, side=lang.sides.get(base))


def _find_phrase(words: list[str], at: int, lang: Language) -> tuple[int, frozenset[str]]:
    """Return the number of words of the table phrase that begins here, and its effect."""
    # The longest phrase wins: "no longer" and "not only" mean something else than their first words.
    for size in range(lang.longest.get(words[at], 0), 0, -1):
        marks = lang.marks.get(" ".join(words[at : at + size]))
        if marks:
            return size, marks
    return 1, frozenset()


def _set_bounds(tokens: list[TextToken]) -> None:
    """Move the bound of `at least 12` or `12 or more` to the number."""
    for at, token in enumerate(tokens):
        bound = next((mark for mark in ("least", "most") if mark in token.marks), "")
        if not bound:
            continue
        after = next((other for other in tokens[at + 1 : at + 4] if other.fact), None)
        before = next((other for other in reversed(tokens[max(0, at - 3) : at]) if other.fact), None)
        number = after or before
        if number is not None and not number.bound:
            number.bound = bound


def name_words(clauses: list[Clause], lang: Language) -> None:
    """Turn words into names if they have a capital letter within a sentence, and never occur without one."""
    if lang.name in _NO_NAMES:
        return
    tokens = [token for clause in clauses for token in clause.tokens]
    # A capital marks a name only if the same word never occurs without one, in either text. At the beginning of a
    # sentence it says nothing.
    small = {fold(token.text) for token in tokens if token.text[:1].islower()}
    names = {
        fold(token.text) for token in tokens if token.kind == "word" and not token.initial and token.text[:1].isupper()
    } - small
    for token in tokens:
        if token.kind == "word" and fold(token.text) in names and token.text[:1].isupper() and token.side is None:
            token.kind, token.key = "name", fold(token.text)
    for clause in clauses:
        clause.tokens = _join_names(clause.tokens)


def _join_names(tokens: list[TextToken]) -> list[TextToken]:
    """Join adjacent names: `Banco Sur` is one name."""
    joined = list[TextToken]()
    for token in tokens:
        if joined and token.kind == joined[-1].kind == "name":
            joined[-1].text, joined[-1].key = f"{joined[-1].text} {token.text}", f"{joined[-1].key} {token.key}"
        else:
            joined.append(token)
    return joined
