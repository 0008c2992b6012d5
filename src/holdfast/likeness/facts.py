"""Numbers with units, dates and times of day, normalised to one form."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from holdfast.likeness.tables import COMMA_DECIMAL, SPACELESS, Language, load_units

_SCALES = {"k": 10**3, "mn": 10**6, "mio": 10**6, "bn": 10**9, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_HALVES = {"am": 0, "pm": 12}
_HOUR_WORDS = frozenset({"uhr", "heures", "heure", "uur", "бजे", "बजे"})
_BETWEEN = frozenset({"of", "de", "del", "the", "den", ".", "d"})
_ORDINALS = frozenset({"st", "nd", "rd", "th", "er", "º", "e", "."})
_RANGES = frozenset(
    {"-", "–", "—", "to", "bis", "à", "a", "al", "tot", "do", "до", "到", "至", "から", "〜", "and", "und", "et", "y"}
)
_EACH = frozenset({"a", "an", "per", "pro", "par", "por", "al", "每", "毎"})
"""Words that mean one before a unit: `a day`, `per day`."""
_SURELY_MONTH = frozenset({"may", "march", "mar"})
"""Months that are also other words: only with a day."""
_LONGEST_NUMBER = 40
_VAGUE = frozenset({"", "angle"})
"""Vague dimensions, which match a more specific one: `33` and `33 degrees` match `33 °C`."""


class TextPiece(NamedTuple):
    """The kind and text of a token."""

    kind: str
    text: str


class Fact(NamedTuple):
    """A number with its unit, a date or a time of day."""

    kind: str
    """number, date, clock."""
    dimension: str
    readings: frozenset[str]
    """The possible meanings: `04/05` has two."""
    bare: Fraction | None = None
    """The number as written, without its unit."""
    year: int = 0
    order: str = ""
    """A date with two readings, as written."""
    soft: bool = False
    """Whether it may be left out: `two things`, `a day`."""

    @property
    def display_key(self) -> str:
        return f"{self.dimension}:{min(self.readings)}"

    def is_same(self, other: Fact) -> bool:
        """Return whether both may mean the same."""
        if self.kind != other.kind:
            pair = {self.kind: self, other.kind: other}
            return (
                {*pair} == {"number", "clock"}
                and pair["clock"].bare is not None
                and not pair["number"].dimension
                and (pair["number"].bare in (pair["clock"].bare, (pair["clock"].bare or 0) % 12))
            )
        if self.year and other.year and self.year % 100 != other.year % 100:
            return False
        if self.order and other.order and self.order != other.order:
            return False
        if self.dimension == other.dimension:
            return bool(self.readings & other.readings)
        return (
            self.kind == "number"
            and self.bare == other.bare
            and not _VAGUE.isdisjoint((self.dimension, other.dimension))
        )


def find_facts(pieces: list[TextPiece], words: list[str], lang: Language) -> dict[int, tuple[int, Fact]]:
    """Return the facts by their start position: how many tokens a fact has, and the fact."""
    reader = _Reader(pieces, words, lang)
    # Left to right, longest reading first; a token belongs to one fact. A fact keeps all its possible readings, and two
    # facts agree if they share one: `04/05` may be April or May, and a comparison must not guess.
    facts, at = dict[int, tuple[int, Fact]](), 0
    while at < len(pieces):
        fact = reader.read_fact(at)
        if fact is not None:
            facts[at] = fact
        at += fact[0] if fact else 1
    _share_units(facts, words)
    return facts


def _share_units(facts: dict[int, tuple[int, Fact]], words: list[str]) -> None:
    """Copy the unit or month of the second of two numbers to the first: `200 to 400 mg`, `12. bis 15. März`."""
    for at, (size, fact) in list(facts.items()):
        # "200 to 400 mg" means 200 mg, but the unit is written once. Without it, 200 could not be compared with "0.2 g"
        # in the other text.
        joint = at + size
        while joint < len(words) and words[joint] == ".":
            joint += 1
        second = facts.get(joint + 1)
        if second is None or words[joint] not in _RANGES:
            continue
        if fact.kind == "date" and words[joint] == "-" and _is_day(second[1]):  # `June 3-6`
            facts[joint + 1] = (second[0], fact._replace(readings=_copy_month(fact, second[1])))
        if fact.kind != "number" or fact.dimension or fact.bare is None:
            continue
        if second[1].kind == "number" and second[1].dimension:
            facts[at] = (size, _scale_like(fact.bare, second[1]))
        elif second[1].kind == "date" and "-" in min(second[1].readings) and _is_day(fact):
            facts[at] = (size, second[1]._replace(readings=_copy_month(second[1], fact)))


def _is_day(fact: Fact) -> bool:
    return fact.kind == "number" and not fact.dimension and fact.bare is not None and 1 <= fact.bare <= 31


def _copy_month(date: Fact, day: Fact) -> frozenset[str]:
    return frozenset({f"{min(date.readings).split('-')[0]}-{day.bare}"})


def _scale_like(value: Fraction, model: Fact) -> Fact:
    # A reading is in the base unit of its dimension, so the ratio of the reading to the written number is the unit's
    # factor.
    total = Fraction(min(model.readings))
    factor = total / model.bare if model.bare else Fraction(1)
    return Fact("number", model.dimension, frozenset({str(value * factor)}), value)


class _Reader:
    """Reads the fact that begins at a position."""

    def __init__(self, pieces: list[TextPiece], words: list[str], lang: Language) -> None:
        self._pieces, self._words, self._lang = pieces, words, lang

    def read_fact(self, at: int) -> tuple[int, Fact] | None:
        kind, text = self._pieces[at]
        if kind in ("ymd", "dmy", "md"):
            return 1, _parse_date(kind, text)
        if kind == "clock":
            return self._read_clock(at)
        if kind == "number" and len(text) <= _LONGEST_NUMBER:
            return self._read_date(at) or self._read_number(at, Fraction(parse_number(text, self._lang)), 1)
        if kind == "unit" or (kind == "word" and self._words[at] in load_units() and text.isupper()):
            return self._read_money(at)
        if kind == "word":
            return self._read_calendar_name(at) or self._read_words(at)
        return None

    def _read_money(self, at: int) -> tuple[int, Fact] | None:
        """Return a unit before its number: `$5`, `GBP 5`."""
        after = self._pieces[at + 1] if at + 1 < len(self._pieces) else TextPiece("", "")
        if after.kind != "number" or len(after.text) > _LONGEST_NUMBER:
            return None
        size, value = self._read_scale(at + 2, Fraction(parse_number(after.text, self._lang)), money=True)
        return 2 + size, _build_quantity(value, self._words[at])

    def _read_number(self, at: int, value: Fraction, size: int, soft: bool = False) -> tuple[int, Fact] | None:
        more, value = self._read_scale(at + size, value)
        size += more
        word = self._get_word(at + size)
        if 0 <= value <= 24 and value.denominator == 1 and not soft:
            if word in _HALVES:
                return size + 1, build_clock(int(value) % 12 + _HALVES[word])
            if word in _HOUR_WORDS or (word == "h" and self._lang.name in ("fr", "es", "pt", "it")):
                return size + 1, build_clock(int(value))
        if word in _ORDINALS and len(word) == 2:
            return size + 1, Fact("number", "", frozenset({str(value)}), value, soft=True)
        for start in (at + size, at + size + 1) if word in ("de", "d", "of") else (at + size,):
            for length in (2, 1):
                unit = " ".join(self._words[start : start + length])
                if unit in load_units():
                    return start + length - at, _build_quantity(value, unit)._replace(
                        soft=(soft and value == 1) or not value
                    )
        after = self._get_word(at + size + 1)
        if (
            word not in self._lang.marks
            and self._get_kind(at + size) == "word"
            and len(after) > 2
            and after in load_units()
        ):
            return size, _build_quantity(value, after)  # `10 business days`: the word between them stays a word
        return size, Fact("number", "", frozenset({str(value)}), value, soft=soft and value <= 10)

    def _read_scale(self, at: int, value: Fraction, money: bool = False) -> tuple[int, Fraction]:
        """Read the words that multiply a number: `4.2 million`, `560k`, `4億8,200万`."""
        size = 0
        while at + size < len(self._words):
            word = self._words[at + size]
            scale = self._lang.scales.get(word) or _SCALES.get(word, 0)
            if word == "m" and (money or self._get_kind(at + size + 1) == "unit"):
                scale = 10**6
            if not scale:
                break
            value, size = value * scale, size + 1
            smaller = self._get_word(at + size + 1)
            if (
                self._lang.name in SPACELESS
                and self._get_kind(at + size) == "number"
                and _SCALES.get(smaller, scale) < scale
            ):
                value += parse_number(self._pieces[at + size].text, self._lang) * _SCALES[smaller]
                size += 2
        return size, value

    def _read_words(self, at: int) -> tuple[int, Fact] | None:
        """Read a number in words: `three`, `two hundred`; `one` and `a` count only before a unit."""
        numbers, scales, word = self._lang.numbers, self._lang.scales, self._words[at]
        value = numbers.get(word)
        article = word in _EACH and self._get_word(at + 1) in load_units()
        if word in scales and scales[word] >= 100 and word not in numbers:
            return self._read_number(at, scales[word], 1)
        if value == Fraction(1, 2):  # `half an hour`, `ein halber Liter`
            skip = 2 if self._get_word(at + 1) in ("a", "an") else 1
            return self._read_number(at, value, skip) if self._get_word(at + skip) in load_units() else None
        if value is None and not article:
            return None
        if article or value == 1:
            unit = self._get_word(at + 1)
            return self._read_number(at, Fraction(1), 1, soft=True) if unit in load_units() or unit in scales else None
        size = 1
        after = numbers.get(self._get_word(at + 1), Fraction(0))
        if value is not None and value >= 20 and 0 < after < 10:
            value, size = value + after, 2
        return self._read_number(at, value or Fraction(0), size, soft=True)

    def _read_calendar_name(self, at: int) -> tuple[int, Fact] | None:
        name = self._lang.named.get(self._words[at], "")
        if name.startswith("month"):
            day = self._get_word(at + 1)
            if day.isdigit() and 1 <= int(day) <= 31:
                size = 3 if self._get_word(at + 2) in _ORDINALS and self._get_word(at + 2) != "." else 2
                more, year = self._read_year(at + size)
                return size + more, Fact("date", "", frozenset({f"{name[6:]}-{int(day)}"}), year=year)
            if self._words[at] in _SURELY_MONTH:
                return None
        return (1, Fact("date", "", frozenset({name}))) if name else None

    def _read_date(self, at: int) -> tuple[int, Fact] | None:
        """Read a date that begins with the day: `5 April 2024`, `5. April`, `el 5 de abril de 2024`."""
        day = self._pieces[at].text
        if not (day.isdigit() and len(day) <= 2 and 1 <= int(day) <= 31):
            return None
        after = at + 1
        while self._get_word(after) in _BETWEEN or self._get_word(after) in _ORDINALS:
            after += 1
        name = self._lang.named.get(self._get_word(after), "")
        if not name.startswith("month"):
            return None
        more, year = self._read_year(after + 1)
        return after + 1 - at + more, Fact("date", "", frozenset({f"{name[6:]}-{int(day)}"}), year=year)

    def _read_year(self, at: int) -> tuple[int, int]:
        start = at
        while self._get_word(at) in (",", "de", "del", "of"):
            at += 1
        text = self._get_word(at)
        return (at + 1 - start, int(text)) if re.fullmatch(r"(?:19|20)\d\d", text) else (0, 0)

    def _read_clock(self, at: int) -> tuple[int, Fact]:
        hour, minute, *_ = (int(part) for part in re.findall(r"\d+", self._pieces[at].text))
        after = self._get_word(at + 1)
        if after in _HALVES:
            return 2, build_clock(hour % 12 + _HALVES[after], minute)
        return 2 if after in _HOUR_WORDS else 1, build_clock(hour, minute)

    def _get_kind(self, at: int) -> str:
        return self._pieces[at].kind if at < len(self._pieces) else ""

    def _get_word(self, at: int) -> str:
        return self._words[at] if at < len(self._words) else ""


def _build_quantity(value: Fraction, unit: str) -> Fact:
    dimension, factor = load_units()[unit]
    return Fact("number", dimension, frozenset({str(value * factor)}), value, soft=not value)  # `no fee` means 0 €


def build_clock(hour: int, minute: int = 0) -> Fact:
    """Format a time of day."""
    bare = Fraction(hour) if not minute else None
    return Fact("clock", "", frozenset({f"{hour % 24}:{minute:02}"}), bare)


def _parse_date(kind: str, text: str) -> Fact:
    parts = [int(part) for part in re.findall(r"\d+", text)]
    if kind == "ymd":
        return Fact("date", "", frozenset({f"{parts[1]}-{parts[2]}"}), year=parts[0])
    if kind == "md":
        return Fact("date", "", frozenset({f"{parts[0]}-{parts[1]}"}), soft="/" in text)
    first, second, *year = parts
    orders = ((first, second),) if "." in text else ((first, second), (second, first))
    readings = frozenset(f"{month}-{day}" for day, month in orders if month <= 12 and day <= 31)
    return Fact(
        "date", "", readings or frozenset({text}), year=year[0] if year else 0, order=text if len(readings) > 1 else ""
    )


def parse_number(text: str, lang: Language) -> Fraction:
    """Return the value of digits with any grouping."""
    # Of a point and a comma, the last one is the decimal sign. One kind alone groups thousands if it occurs several
    # times, or if exactly three digits follow and the language does not use it as a decimal sign: `1.234` is 1234 in
    # German, and 0.234 is never a group.
    text = re.sub(r"[\s'_+]", "", text)
    points, commas = text.count("."), text.count(",")
    if points and commas:
        decimal = max(".,", key=text.rfind)
        text = text.replace("," if decimal == "." else ".", "").replace(decimal, ".", 1)
    elif points or commas:
        sign = "." if points else ","
        after = len(text) - text.rfind(sign) - 1
        grouped = points + commas > 1 or (
            after == 3 and (sign == ",") != (lang.name in COMMA_DECIMAL) and text[0] != "0"
        )
        text = text.replace(sign, "" if grouped else ".")
    return Fraction(text if text.count(".") <= 1 else text.replace(".", ""))


_DIGITS = {sign: n for n, signs in enumerate(("零〇", "一", "二两", *"三四五六七八九")) for sign in signs}
_TENS = {"十": 10, "百": 100, "千": 1000}
_SIGNS = "零〇一二两三四五六七八九十百千"
_COUNTED = "折元块円圆天日周年月小分秒个人次件台点時时名位条份岁歳週本枚万亿億度公米克升%つ個冊回"
_NUMERAL = re.compile(rf"(?<![{_SIGNS}])[{_SIGNS}]{{1,12}}(?=[{_COUNTED}])")
_PERCENT = re.compile(rf"百分之([{_SIGNS}]{{1,8}}|\d+)")
_HOUR = re.compile(r"(上午|下午|早上|晚上|午前|午後)?\s*(\d{1,2})(?:点|時|时|:(?=\d\d))(?!间|間)(半|(\d{1,2})分?)?")
_LATIN = re.compile(r"(?<=[^\W\dA-Za-z_])(?=[A-Za-z])|(?<=[A-Za-z])(?=[^\W\dA-Za-z_])")


def convert_numerals(text: str) -> str:
    """Convert Chinese and Japanese numerals and times to digits, and separates Latin words from other characters."""
    text = _LATIN.sub(" ", text)
    text = _PERCENT.sub(lambda m: f"{m[1] if m[1].isdigit() else _parse_numeral(m[1])}%", text)
    text = _NUMERAL.sub(lambda m: str(_parse_numeral(m[0])), text)
    return _HOUR.sub(_format_hour, text)


def _parse_numeral(numeral: str) -> int:
    total, digit = 0, 0
    for sign in numeral:
        if sign in _TENS:
            total, digit = total + (digit or 1) * _TENS[sign], 0
        else:
            digit = digit * 10 + _DIGITS[sign]
    return total + digit


def _format_hour(match: re.Match[str]) -> str:
    late = match[1] in ("下午", "晚上", "午後") and int(match[2]) < 12
    return f" {int(match[2]) + 12 * late}:{30 if match[3] == '半' else int(match[4] or 0):02} "
