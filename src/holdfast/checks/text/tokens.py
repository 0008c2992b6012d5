"""A text as sentences of tokens: words by their stems, facts, and what small words do to them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from holdfast.checks.text.dates import separate
from holdfast.checks.text.facts import facts_at
from holdfast.checks.text.folding import fold, table
from holdfast.checks.text.languages import NO_SPACES, Language
from holdfast.checks.text.quantities import signed, western
from holdfast.checks.text.sentence import DENIES, Sentence, TextToken
from holdfast.checks.text.stems import stem
from holdfast.checks.text.synonyms import group_of, kin_of, phrases, written

_LETTER = (
    r"(?:[^\W\d_]|[\u0300-\u036f\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u200c\u200d])"
)
_SCAN = re.compile(
    r"(?P<step>\ue000)"
    r"|(?P<code>https?://[^\s<>\"')]+[^\s<>\"').,!?;:]|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|(?=[A-Za-z])(?=[A-Za-z_-]{0,64}\d)[A-Za-z][A-Za-z\d]*(?:[-_][A-Za-z\d]+)*)"
    r"|(?P<ymd>\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|\d{4}年\d{1,2}月\d{1,2}日)"
    r"|(?P<dmy>\d{1,2}(?P<sign>[./-])\d{1,2}(?P=sign)(?:\d{4}|\d{2})(?!\d))"
    r"|(?P<md>\d{1,2}月\d{1,2}日)"
    r"|(?P<clock>\d{1,2}(?::|\s?h\s?)\d{2}(?::\d{2})?(?!\d))"
    r"|(?P<number>(?<![\w.,])[-−\ue001]?\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?![\d])(?:[.,]\d+)?"
    r"|(?:(?<!\d)[-−]|\ue001)?\d+(?:[.,']\d+)*)"
    rf"|(?P<word>{_LETTER}+(?:['-]{_LETTER}+)*)"
    r"|(?P<unit>R\$|US\$|°[CF]|[$€£¥₹₽%°])"
    r"|(?P<compared>(?<=[^\S\n])[<>](?=\s)|(?<=\w)[<>](?=\d)|[!<>]=|[≤≥≠])"
    r"|(?P<sign_>==|[.!?;:,\n。、،؛؟।=+×()|])"
)
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*•–]|(\d{1,2})[.)])[ \t]+(?=\S)", re.MULTILINE)
_LIST_BEGINS = re.compile(r":[ \t]*\n+[ \t]*[-*•–][ \t]+")
_LIST_GOES_ON = re.compile(r"(?<![.!?:;,\s*])[ \t]*\n[ \t]*[-*•–][ \t]+(?=\S)")
_IDLE = frozenset(
    {
        "empty",
        "polite",
        "is",
        "was",
        "past",
        "and",
        "step",
        "agent",
        "than",
        "will",
        "so",
        "toward",
        "away",
        "first",
        "second",
        "third",
    }
)
_TURNED = frozenset({"not", "impossible"})
_POLITE = frozenset({"polite"})
"""Politeness begins or ends a sentence; inside of it the same words mean something."""
_BY_ITSELF = frozenset({"on", "off", "up", "down", "out", "in"})
"""Small words that say something where nothing follows: `the light is off`."""
_ENDS = frozenset(".!?;\n。؛؟।|")
_CONTRACTIONS = (
    (re.compile(r"\b(?:can't|cannot)\b", re.I), "can not"), (re.compile(r"\bwon't\b", re.I), "will not"),
    (re.compile(r"\bshan't\b", re.I), "shall not"), (re.compile(r"n't\b", re.I), " not"),
    (re.compile(r"'ll\b", re.I), " will"), (re.compile(r"'ve\b", re.I), " have"), (re.compile(r"'re\b", re.I), " are"),
    (re.compile(r"'m\b", re.I), " am"), (re.compile(r"'d\b", re.I), " would"),
    (re.compile(r"\b(it|he|she|that|there|what|here|who)'s\b", re.I), r"\1 is"),
    (re.compile(r"\b(?:etc|mr|mrs|ms|mon|tue|wed|thu|fri|sat|sun)\.(?=\s)", re.I),
     lambda m: m[0][:-1].replace(".", "")),
    (re.compile(r"\b([ap])\.m\.?", re.I), r"\1m"),
)  # fmt: skip


_COUNTED = re.compile(
    r"(?<=\w)-(?=(?:minute|hour|day|week|month|year|mile|metre|meter|kilometre|euro|dollar)s?\b)", re.I
)
_RULE = re.compile(r"\n[ \t]*\|?[ \t:|-]*-[ \t:|-]*(?=\n|$)")
_ROW = re.compile(r"(?:^|\n)[ \t]*\|(.+?)\|?[ \t]*(?=\n|$)")
_PARTICLES = frozenset({"back", "off", "on", "up", "down", "out", "in"})
_PREPOSITIONS = frozenset({"in", "on"})
"""Particles only where nothing follows: `fill the form in`, not `pay in the shop`."""
_LONGEST_NUMBER = 40
"""Signs of a number; a longer one is compared as it is written."""
_LIGHT = 0.2
"""What a word counts that is hardly missed."""


def plain(text: str, lang: Language) -> str:
    """The text without marks of layout, contractions written out."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
    text = signed(text)
    text = _LIST_BEGINS.sub(": ", _LIST_GOES_ON.sub(", ", text))
    text = _LIST_MARK.sub(lambda m: "\n\ue000 " if m[1] else "\n", text)
    text = re.sub(r"[*_`#~\"“”«»„]+", " ", text).replace("—", " - ")
    text = re.sub(r"(?<=\be)-(?=mail)", "", text, flags=re.I)
    if lang.name in NO_SPACES:
        text = western(text)
    if lang.name == "en":
        for pattern, full in _CONTRACTIONS:
            text = pattern.sub(full, text)
        text = _COUNTED.sub(" ", text)
    shorts = _shorts(lang.name)
    if shorts:
        text = shorts[0].sub(lambda m: shorts[1][m[1].casefold()], text)
    text = separate(text, lang)
    lower = text.lower()
    for hint, pattern, shorter in _idioms(lang.name):
        if hint in lower:
            text = pattern.sub(shorter, text)
            lower = text.lower()
    text = _table_rows(text)
    if lang.name in ("fr", "it"):
        text = re.sub(r"\b([cdjlmnst]|qu|dell|all|nell|sull|dall|un|quest)'(?=\w)", r"\1 ", text, flags=re.I)
    return text


@cache
def _shorts(name: str) -> tuple[re.Pattern[str], dict[str, str]] | None:
    """What finds the abbreviations of a language, and what they stand for."""
    pairs = [pair.split("=") for pair in table("words.toml")[name].get("short", "").split()]
    full = {short: long.replace("_", " ") for short, long in pairs}
    names = "|".join(map(re.escape, sorted(full, key=len, reverse=True)))
    return (re.compile(rf"(?<![\w.@/-])({names})(?:\.(?!\w)|(?![\w@'./-]))", re.I), full) if full else None


@cache
def _idioms(name: str) -> tuple[tuple[str, re.Pattern[str], str], ...]:
    """What finds a turn of phrase whose words stand apart, and how it is said with fewer."""
    return tuple((hint, re.compile(found, re.I), said) for hint, found, said in table("idioms.toml").get(name, ()))


def _table_rows(text: str) -> str:
    """The rows of a table as sentences whose cells are parted by commas."""
    if "|" not in text:
        return text
    text = _RULE.sub("\n", text)
    return _ROW.sub(lambda m: "\n" + ", ".join(cell.strip() for cell in m[1].split("|")) + "\n", text)


def sentences(text: str, lang: Language, apart: frozenset[str] = frozenset()) -> list[Sentence]:
    """The sentences that say something; phrases with a negation are word by word if their group is in `apart`."""
    text = plain(text, lang)
    found, current, numbered = [], Sentence(), False
    for token in _marked(facts_at(list(_raw(text, lang)), lang), lang, apart):
        if token.text == "\ue000":
            numbered = True
        elif not token.text:
            continue  # a particle that was counted with its verb
        elif token.text in _ENDS:
            asked = (
                bool(current.tokens) and "polite" not in current.tokens[0].marks
            )  # `Could you send it?` asks nothing
            current.question = token.text in "?؟" and asked
            if current.tokens:
                found.append(current)
            current = Sentence()
        else:
            if not current.tokens:
                current.numbered, numbered = numbered, False
            current.tokens.append(token)
    if current.tokens:
        found.append(current)
    return [one for one in found if one.content or any(token.marks - _IDLE for token in one.tokens)]


def _raw(text: str, lang: Language) -> Iterator[tuple[str, str, int]]:
    """Kind, text and place of everything that is written."""
    for found in _SCAN.finditer(text):
        kind = str(found.lastgroup)
        if kind == "sign":
            kind = "dmy"
        elif kind == "number" and len(found[0]) > _LONGEST_NUMBER:
            kind = "code"
        if kind == "word" and lang.segments is not None:
            yield from _segmented(found[0], found.start(), lang.segments)
        else:
            yield kind, found[0], found.start()


def _segmented(word: str, at: int, known: re.Pattern[str]) -> Iterator[tuple[str, str, int]]:
    """A run of signs as the words that are known, and single signs; Latin letters and katakana stay together."""
    place = 0
    while place < len(word):
        found = known.match(word, place) or re.compile(r"[A-Za-z]+|[\u30a0-\u30ff]+|.").match(word, place)
        assert found is not None
        yield "word", found[0], at + place
        place = found.end()


def _marked(tokens: list[TextToken], lang: Language, apart: frozenset[str]) -> Iterator[TextToken]:
    """Phrases and small words with what they do, other words with their keys."""
    groups, long, kin = group_of(lang.name), phrases(lang.name), kin_of(lang.name)
    at, opening = 0, True
    while at < len(tokens):
        token = tokens[at]
        if token.fact is not None or token.key:
            yield token
            at, opening = at + 1, False
            continue
        word = fold(token.text)
        size, marks = _phrase(tokens, at, lang)
        base = stem(word, lang.name)
        grouped = _grouped(base, tokens, at, long.get(base, 1), groups)
        if grouped and marks & _TURNED and groups[_joined(base, tokens[at : at + grouped])] in apart:
            grouped = 0
        if grouped > size or (not marks and grouped):
            phrase = _joined(base, tokens[at : at + grouped])
            token.key, token.kin = groups[phrase], kin[phrase]
            token.marks = DENIES if marks & _TURNED else token.marks
            token.text = " ".join(t.text for t in tokens[at : at + grouped])
            yield token
            at, opening = at + grouped, False
            continue
        last = at + size == len(tokens) or tokens[at + size].text in _ENDS
        if (marks == _POLITE and not opening and not last) or (last and size == 1 and word in _BY_ITSELF):
            marks, size = frozenset(), 1
        token.marks = marks
        single_letter = (
            len(token.text) == 1 and token.text.isupper() and not opening and lang.name != "de" and word != "i"
        )
        if single_letter:
            token.marks, token.key, token.name = frozenset(), word, True
        elif not marks and token.text[:1].isalpha():
            said = _apart(base, tokens, at, groups) if base in long else base
            if said != word or lang.name != "en" or word in written("en"):  # `Sam` is no form of `same`
                said, token.kin = groups.get(said, said), kin.get(said, token.kin)
            token.key = said
            token.weight = _LIGHT if word in lang.light or base in lang.light else 1.0
            token.name = _is_name(token.text, opening, lang) and not token.key.startswith("=")
        token.text = " ".join(t.text for t in tokens[at : at + size])
        yield token
        opening = (
            token.text in _ENDS
            or token.text in (":", "\ue000")
            or (opening and "polite" in marks)
            or (opening and token.text == ",")
        )
        at += size


def _is_name(text: str, opening: bool, lang: Language) -> bool:
    return text[0].isupper() and not opening and not text.isupper() and lang.name not in ("de", "zh", "ja", "ar", "hi")


def _phrase(tokens: list[TextToken], at: int, lang: Language) -> tuple[int, frozenset[str]]:
    """How many tokens the longest known phrase takes here, and what it does."""
    first = fold(tokens[at].text)
    for size in range(min(lang.longest.get(first, 1), len(tokens) - at), 0, -1):
        phrase = " ".join(fold(token.text) for token in tokens[at : at + size])
        marks = lang.marks.get(phrase)
        if marks:
            return size, marks
    return 1, frozenset()


def _grouped(base: str, tokens: list[TextToken], at: int, longest: int, groups: dict[str, str]) -> int:
    for size in range(min(longest, len(tokens) - at), 1, -1):
        if _joined(base, tokens[at : at + size]) in groups:
            return size
    return 0


def _joined(base: str, tokens: list[TextToken]) -> str:
    return " ".join((base, *(fold(token.text) for token in tokens[1:])))


def _apart(base: str, tokens: list[TextToken], at: int, groups: dict[str, str]) -> str:
    """A verb with its particle, which may stand a few words later: `send the old one back`."""
    for place, later in enumerate(tokens[at + 2 : at + 5], at + 2):
        said = f"{base} {later.text}"
        ends = place + 1 == len(tokens) or not tokens[place + 1].text[:1].isalnum()
        if later.text in _PARTICLES and said in groups and (ends or later.text not in _PREPOSITIONS):
            later.text = ""
            return said
    return base
