"""The facts of a text that no measure of likeness sees: numbers, negations, names, opposites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {
    **{word: n for n, word in enumerate(_SMALL.split())},
    **{word: 10 * n for n, word in enumerate(_TENS.split(), 2)},
}
_SCALES = {"k": 10**3, "thousand": 10**3, "m": 10**6, "mn": 10**6, "million": 10**6}
_SCALES |= {"b": 10**9, "bn": 10**9, "billion": 10**9, "trillion": 10**12}
_NUMBER = re.compile(
    r"([$€£]?)(?<![A-Za-z\d.,])(\d[\d,]*(?:\.\d+)?)(?:(k|K|mn?|M|bn?|B)\b|\s(thousand|million|billion|trillion)\b)?"
)
_MINUS = re.compile(r"(?:^|[\s(:=])[-−]$")
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+(?=\S+\s)", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[.!?;:,\n]")
_CODE = re.compile(r"[A-Za-z]+\d\w*")

_NOT = "not no never without neither nor none nothing nobody"
_FUNCTION_WORDS = (
    "a an the any be been is are was were am do does did have has had will would can could should must may might to of"
    " yet currently always ever really even still just longer more so very your our my their his her its this that"
    " these those it you we they i he she there for in on at by with as and or but if then"
)
_FIRST_WORDS = (
    "what when where which who why how here please sorry thank thanks hello hi dear note also however according based"
    " because since after before during while although unfortunately today yes no ok okay sure certainly total all some"
    " each every both most many several another other additionally finally first second next therefore thus overall let"
    " open click choose select enter go use see try call turn"
)
_NEGATORS = frozenset(_NOT.split())
_EMPTY = frozenset(_FUNCTION_WORDS.split())
_OPENERS = frozenset(_FIRST_WORDS.split())
"""Words that open sentences and are no names."""


class Facts(NamedTuple):
    """What a text states, as far as signs and words tell."""

    numbers: frozenset[float]
    names: frozenset[str]
    """Capitalised inside a sentence, and codes such as Q3."""
    openers: frozenset[str]
    """Capitalised at the start of a sentence: a name or any word."""
    stated: frozenset[str]
    denied: frozenset[str]
    """Content words with a negation before them."""
    verdict: str
    """`yes` or `no` if the text begins so."""
    spelling: Mapping[str, str]
    """How each stem is written in the text."""

    @property
    def words(self) -> frozenset[str]:
        return self.stated | self.denied


def stem(word: str) -> str:
    """The word without its common English endings: enough to match 'accepted' with 'accept'."""
    word = word.casefold().split("'")[0]
    for ending in ("ations", "ation", "ments", "ment", "ings", "ing", "ied", "ies", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending in ("ied", "ies") else "")
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def plain(text: str) -> str:
    """The text without marks of layout, contractions written out."""
    text = re.sub(r"[*_`#|]+", " ", _LIST_MARK.sub("", text)).replace("’", "'")
    text = re.sub(r"\bcan't\b|\bcannot\b", "can not", text, flags=re.IGNORECASE)
    text = re.sub(r"\bwon't\b", "will not", text, flags=re.IGNORECASE)
    text = re.sub(r"\bright (?=now|away)", "", text, flags=re.IGNORECASE)
    text = re.sub(r"\b(?:unable|fail(?:s|ed)?) to\b", "not", text, flags=re.IGNORECASE)
    return re.sub(r"n't\b", " not", text, flags=re.IGNORECASE)


def read(text: str) -> Facts:
    """The facts of a text."""
    text = plain(text)
    names, openers = _names(text)
    stated, denied = _polarity(text)
    found = re.match(r"\W*(yes|no)\b(?!\s+\w)", text, re.IGNORECASE)
    verdict = found.group(1).lower() if found else ""
    spelling = {stem(word): word for word in reversed(_WORD.findall(text))}
    return Facts(frozenset(_numbers(text)), names, openers, stated, denied, verdict, spelling)


def _numbers(text: str) -> Iterator[float]:
    for match in _NUMBER.finditer(text):
        currency, digits, letter, word = match.groups()
        scale = 1 if letter == "m" and not currency else _SCALES.get((letter or word or "").casefold(), 1)
        value = round(float(digits.replace(",", "")) * scale, 6)
        yield -value if _MINUS.search(text[max(0, match.start() - 2) : match.start()]) else value
    for word in re.findall(r"[a-z]+", text.casefold()):
        if word in NUMBER_WORDS:
            yield float(NUMBER_WORDS[word])


def _names(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names inside sentences, and capitalised words that begin one."""
    names: set[str] = set()
    openers: set[str] = set()
    opening = True
    for word in _WORD.findall(text):
        if not word[0].isalnum():
            opening = opening or word in ".!?:\n"
            continue
        folded = word.casefold()
        if _CODE.fullmatch(word) or (word.isupper() and len(word) > 2):
            names.add(stem(word))
        elif word[0].isupper() and len(word) > 1 and folded not in _EMPTY and folded not in NUMBER_WORDS:
            if not opening:
                names.add(stem(word))
            elif folded not in _OPENERS:
                openers.add(stem(word))
        opening = False
    return frozenset(names), frozenset(openers - names)


def _polarity(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The content words, apart: those stated and those that a negation stands before."""
    stated: set[str] = set()
    denied: set[str] = set()
    negated = False
    for word in _WORD.findall(text.casefold()):
        if word in _NEGATORS:
            negated = True
        elif not word[0].isalnum():
            negated = False
        elif word not in _EMPTY and word not in NUMBER_WORDS and not word[0].isdigit():
            (denied if negated else stated).add(stem(word))
            negated = False
    return frozenset(stated), frozenset(denied)
