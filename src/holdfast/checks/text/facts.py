"""Numbers, dates and clock times among the words of a text."""

from __future__ import annotations

import re
from fractions import Fraction

from holdfast.checks.text.clocks import HOURS, spoken
from holdfast.checks.text.folding import fold
from holdfast.checks.text.languages import COMMA_DECIMAL, Language
from holdfast.checks.text.quantities import (
    LETTER_SCALES,
    OWED,
    Fact,
    clock,
    day_month,
    number,
    numeric_date,
    quantity,
    units,
)
from holdfast.checks.text.sentence import TextToken

Raw = tuple[str, str, int]
_BETWEEN = frozenset({"of", "de", "del", "the", "den", "."})
_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|º|ª|ª|e|\.)$")
_HALVES = {"am": "am", "pm": "pm"}
_NAMED_HOURS = {"noon": 12, "midday": 12, "midnight": 0, "mittag": 12, "mitternacht": 0, "mediodía": 12, "minuit": 0,
                "midi": 12, "mezzogiorno": 12, "mezzanotte": 0, "medianoche": 0, "meio-dia": 12, "meia-noite": 0,
                "полдень": 12, "полночь": 0, "południe": 12, "północ": 0, "正午": 12, "中午": 12}  # fmt: skip
_DURATIONS = frozenset({"h", "hrs", "horas"})
_PARTS = {"half": Fraction(1, 2), "quarter": Fraction(1, 4), "third": Fraction(1, 3)}
_A, _OF = (frozenset({"a", "an"}),), (frozenset({"of"}),)
_OF_A = (*_OF, *_A)
_SIGNS = {"+": "plus", "×": "times", "==": "="}
_COMPARED = {"≤": "<=", "≥": ">=", "≠": "!="}
_NTH = """first second third fourth fifth sixth seventh eighth ninth tenth"""
_ORDINALS = {word: n for n, word in enumerate(_NTH.split(), 1)}
_RANKED = frozenset(["finished", "came", "placed", "ranked", "in", "was", "were"])
_DETERMINED = frozenset(["the", "this", "that", "my", "your", "his", "her", "its", "our", "their", "every", "each"])
_LABELS = frozenset({"section", "version", "chapter", "release", "clause", "article", "v", "abschnitt", "kapitel"})
"""Before a number whose last zero counts: section 3.10 is not section 3.1."""
_NAMED_SO = """python node node.js java ruby php go rust perl swift kotlin typescript django rails react angular vue
numpy pandas postgresql postgres mysql mariadb sqlite redis kafka nginx apache docker kubernetes helm terraform ansible
linux kernel ubuntu debian fedora ios ipados android macos windows chrome firefox safari tls http bluetooth usb
api sdk"""
_PRODUCTS = frozenset(_NAMED_SO.split())
"""What has versions: Python 3.10 is not Python 3.1."""


def facts_at(raw: list[Raw], lang: Language) -> list[TextToken]:
    """Tokens in which everything with a number is one fact."""
    return _Reader(raw, lang).tokens()


class _Reader:
    """Goes through what is written, from one fact to the next."""

    def __init__(self, raw: list[Raw], lang: Language) -> None:
        self._raw = raw
        self._lang = lang
        self._words = [fold(text) for _, text, _ in raw]

    def tokens(self) -> list[TextToken]:
        found, at = [], 0
        while at < len(self._raw):
            kind, text, place = self._raw[at]
            size, fact = self._fact(at)
            if fact is not None:
                shown = " ".join(t for _, t, _ in self._raw[at : at + size]).replace(OWED, "-")
                found.append(TextToken(shown, "#", place, fact=fact))
            elif kind == "compared":
                found.append(TextToken(text, _COMPARED.get(text, text), place, name=True))
            elif kind == "code":
                found.append(TextToken(text, fold(text), place, name=True))
            else:
                found.append(TextToken(_SIGNS.get(text, text), "", place))
            at += size
        return found

    def _fact(self, at: int) -> tuple[int, Fact | None]:
        kind, text, _ = self._raw[at]
        if kind in ("ymd", "dmy", "md"):
            return 1, self._date(kind, text)
        if kind in ("word", "number", "clock") and (said := spoken(self._words, at, self._lang) or self._part(at)):
            return said
        if kind == "clock":
            return self._clock(at)
        word = self._words[at]
        if kind == "unit" and self._kind(at + 1) == "number":
            size, value = self._value(at + 1)
            return 1 + size, quantity(value, word)
        if kind == "number" and self._is_label(at):
            return 1, Fact("quantity", frozenset({f"{text} as written"}))
        if kind == "number" or (kind == "word" and self._is_number(at)):
            return self._number(at)
        if self._is_ordinal(at):
            return 1, quantity(_ORDINALS[word])
        if kind == "word":
            return self._named(at)
        return 1, None

    def _part(self, at: int) -> tuple[int, Fact] | None:
        """`a quarter of a litre`, `half an hour`, `an hour and a half`, `a third of them`."""
        words = self._words
        part = _PARTS.get(words[at]) if self._lang.name == "en" else None
        if part:
            size = next((n for n, form in ((3, _OF_A), (2, _OF), (2, _A)) if self._is(at + 1, form)), 1)
            if size > 1 and self._word(at + size) in units() and (words[at] != "second"):
                return size + 1, quantity(part, self._word(at + size))
            return (1, quantity(100 * part, "%")) if words[at] != "half" and self._word(at + 1) == "of" else None
        unit = self._word(at + 1) if self._lang.name == "en" and words[at] in ("a", "an", "one") else ""
        if unit in units() and tuple(words[at + 2 : at + 5]) == ("and", "a", "half"):
            return 5, quantity(Fraction(3, 2), unit)
        once = units().get(unit, ("", 0))[0] == "time" and self._alone(at - 1) and not self._is_rate(at)
        return (2, quantity(1, unit)) if once else None

    def _is_rate(self, at: int) -> bool:
        """`100 requests a minute`"""
        if "empty" in self._lang.marks.get(self._word(at - 1), ()):
            return False
        return any(self._kind(n) == "number" or self._word(n) in self._lang.numbers for n in range(at - 3, at))

    def _is_label(self, at: int) -> bool:
        """Whether a number is no amount: a version, an address, the number of a section."""
        text = self._raw[at][1].lstrip("-−" + OWED)
        if text.count(".") > 1:
            return not re.fullmatch(r"\d{1,3}(?:\.\d{3})+", text) and "," not in text
        if "." not in text or self._word(at - 1) in _LABELS:
            return "." in text
        named = at > 1 and self._kind(at - 2) == "word" and self._raw[at - 1][1][:1].isupper()
        product = self._word(at - 1) in _PRODUCTS or (named and self._lang.name != "de")
        return product and bool(re.fullmatch(r"\d{1,2}\.\d{1,2}", text)) and not self._unit(at + 1)[0]

    def _is_ordinal(self, at: int) -> bool:
        """`the second option`, `he finished second`; elsewhere such a word puts steps in order or is a unit."""
        if self._lang.name != "en" or self._words[at] not in _ORDINALS:
            return False
        return self._word(at - 1) in _DETERMINED or self._word(at - 1) in _RANKED

    def _alone(self, at: int) -> bool:
        """Whether nothing is counted here: `4 euros an hour` speaks of no hour."""
        word = self._word(at)
        return (
            self._kind(at) in ("", "word", "sign_")
            and word not in units()
            and word not in ("once", "twice", "times", "such", "what")
        )

    def _is(self, at: int, form: tuple[frozenset[str], ...]) -> bool:
        return all(self._word(at + n) in words for n, words in enumerate(form))

    def _named(self, at: int) -> tuple[int, Fact | None]:
        word = self._words[at]
        named = self._lang.named.get(word, "")
        if named.startswith("month") and (word != "may" or self._raw[at][1][0].isupper()):
            month = int(named[6:])
            if self._kind(at + 1) == "number" and self._is_day(at + 1):
                day, used = self._day(at + 1)
                more, year = self._year(at + 1 + used)
                return 1 + used + more, day_month(day, month, year)
            if word != "may" and word != "mar":
                return 1, Fact("date", frozenset({named}))
        if named.startswith("day"):
            return 1, Fact("date", frozenset({named}))
        if word in _NAMED_HOURS:
            return 1, clock(_NAMED_HOURS[word])
        if "half" in self._lang.marks.get(word, ()):
            return 1, quantity(50, "%")
        if word in self._lang.times:
            return 1, quantity(self._lang.times[word], "times")
        return 1, None

    def _number(self, at: int) -> tuple[int, Fact | None]:
        if self._raw[at][0] == "number" and self._is_day(at):
            day, used = self._day(at)
            after = at + used
            while self._word(after) in _BETWEEN:
                after += 1
            named = self._lang.named.get(self._word(after), "")
            if named.startswith("month"):
                more, year = self._year(after + 1)
                return after + 1 - at + more, day_month(day, int(named[6:]), year)
        size, value = self._value(at)
        word = self._word(at + size)
        if 0 <= value <= 24 and value == int(value):
            if word in _HALVES:
                return size + 1, clock(int(value), half=_HALVES[word])
            if word in HOURS and not (word in _DURATIONS and self._lang.name == "en"):
                return size + 1, clock(int(value))
        if word in ("st", "nd", "rd", "th"):
            return size + 1, quantity(value)
        used, unit = self._unit(at + size)
        return size + used, quantity(value, unit)

    def _unit(self, at: int) -> tuple[int, str]:
        known = units()
        for start in (at, at + 1) if self._word(at) in ("de", "of") else (at,):
            for size in (2, 1):
                name = " ".join(self._words[start : start + size])
                if name in known:
                    return start + size - at, name
        return 0, ""

    def _value(self, at: int) -> tuple[int, Fraction]:
        """A number in figures or words, with what scales it."""
        lang, size = self._lang, 1
        if self._kind(at) == "number":
            value = self._figures(at)
        else:
            value, size = self._in_words(at)
        if self._is_half_more(at + size):
            value, size = value + Fraction(1, 2), size + 3
        while at + size < len(self._words):
            word = self._words[at + size]
            scale = lang.scales.get(word) or LETTER_SCALES.get(word, 0)
            if word == "m" and (at == 0 or self._kind(at - 1) == "unit"):
                scale = 10**6
            if not scale:
                break
            value, size = value * scale, size + 1
        return size, value

    def _in_words(self, at: int) -> tuple[Fraction, int]:
        """`two hundred and forty-two`: what is smaller is added, what is larger multiplies."""
        numbers, scales = self._lang.numbers, self._lang.scales
        total, part, size = Fraction(0), Fraction(0), 0
        while at + size < len(self._words):
            parts = self._words[at + size].split("-")
            if all(word in numbers for word in parts) and (not part or numbers[parts[0]] < max(part % 100 or 100, 10)):
                part += sum(numbers[word] for word in parts)
            elif parts[0] in scales and size:
                part = (part if part > 1 else Fraction(1)) * scales[parts[0]]
                if scales[parts[0]] > 100:
                    total, part = total + part, Fraction(0)
            elif not (size and self._adds(parts[0], part) and self._word(at + size + 1) in numbers):
                break
            size += 1
        if not size:
            return scales[self._words[at]], 1
        return total + part, size

    def _is_half_more(self, at: int) -> bool:
        return self._words[at : at + 3] == ["and", "a", "half"]

    def _adds(self, word: str, part: Fraction) -> bool:
        """`two hundred and forty`, `treinta y cinco`; but `two and four` are two numbers."""
        least = 20 if word in ("y", "e") else 100
        return word in ("and", "und", "y", "e") and part % 10 == 0 and (part >= least or not part)

    def _is_number(self, at: int) -> bool:
        """Whether a word is a number; `one` and `a` only before a unit."""
        lang, word = self._lang, self._words[at]
        parts = word.split("-")
        if word in lang.scales and lang.scales[word] >= 100:
            return True
        if not all(part in lang.numbers for part in parts):
            return False
        value = lang.numbers[parts[0]]
        if len(parts) == 1 and value == 1:
            after = self._word(at + 1)
            return after in units() or after in lang.scales or self._is_half_more(at + 1)
        return True

    def _date(self, kind: str, text: str) -> Fact:
        parts = [int(part) for part in re.findall(r"\d+", text)]
        if kind == "ymd":
            return day_month(parts[2], parts[1], parts[0])
        if kind == "md":
            return day_month(parts[1], parts[0])
        sign = re.sub(r"\d", "", text)[0]
        return numeric_date(parts[0], sign, parts[1], parts[2]) or Fact("date", frozenset({text}))

    def _clock(self, at: int) -> tuple[int, Fact | None]:
        hour, minute, *second = (int(part) for part in re.findall(r"\d+", self._raw[at][1]))
        after = self._word(at + 1)
        size = 2 if after in _HALVES or after in HOURS else 1
        return size, clock(hour, minute, second[0] if second else 0, _HALVES.get(after, ""))

    def _figures(self, at: int) -> Fraction:
        text = self._raw[at][1]
        negative = text[0] in "-−"
        value = number(text.lstrip("-−" + OWED), comma_decimal=self._lang.name in COMMA_DECIMAL)
        before = self._raw[at - 1] if at else None
        joined = before is not None and before[2] + len(before[1]) == self._raw[at][2]
        return -value if text[0] == OWED or (negative and not joined) else value

    def _is_day(self, at: int) -> bool:
        text = self._raw[at][1]
        return text.isdigit() and 1 <= int(text) <= 31 and len(text) <= 2

    def _day(self, at: int) -> tuple[int, int]:
        ordinal = bool(_ORDINAL.fullmatch(self._word(at + 1)))
        return int(self._raw[at][1]), 2 if ordinal else 1

    def _year(self, at: int) -> tuple[int, int]:
        start = at
        while self._word(at) in (",", "de", "del", "of"):
            at += 1
        text = self._raw[at][1] if self._kind(at) == "number" else ""
        return (at + 1 - start, int(text)) if re.fullmatch(r"(?:19|20)\d\d", text) else (0, 0)

    def _kind(self, at: int) -> str:
        return self._raw[at][0] if 0 <= at < len(self._raw) else ""

    def _word(self, at: int) -> str:
        return self._words[at] if 0 <= at < len(self._words) else ""
