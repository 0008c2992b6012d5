"""Numbers, units, dates and clock times: one form for every way to write the same one."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from holdfast.checks.text.folding import fold, table

LETTER_SCALES = {"k": 10**3, "mn": 10**6, "mio": 10**6, "bn": 10**9, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}


class Fact(NamedTuple):
    """A number with its unit, a date, a time of the day."""

    kind: str
    """quantity, date, clock."""
    readings: frozenset[str]
    """What it may mean; `04/05` has two."""
    year: int = 0
    order: str = ""
    """Of a date that has two readings: as it is written."""
    bare: frozenset[Fraction] = frozenset()
    """Of a full hour: the numbers that it is also written as. Of a number without a unit: itself."""


@cache
def units() -> dict[str, tuple[str, Fraction]]:
    """By name: what is measured, and how much of its base unit that is."""
    found = {}
    for dimension, pairs in table("units.toml").items():
        for pair in pairs.split():
            name, _, factor = pair.rpartition("=")
            found[fold(name).replace("_", " ")] = (dimension, Fraction(factor))
    return found


def agree(one: Fact, other: Fact) -> bool:
    """Whether both may be the same."""
    if one.kind != other.kind:
        return {one.kind, other.kind} == {"quantity", "clock"} and bool(one.bare & other.bare)
    if one.order and other.order and one.order != other.order:
        return False
    if one.year and other.year and one.year % 100 != other.year % 100:
        return False
    return bool(one.readings & other.readings)


def quantity(value: Fraction | int, unit: str = "") -> Fact:
    """So much of a unit."""
    dimension, factor = units().get(unit, (unit, Fraction(1)))
    shown = f"{value * factor} {dimension}"
    return Fact("quantity", frozenset({shown}), bare=frozenset({Fraction(value)}) if not unit else frozenset())


def clock(hour: int, minute: int = 0, second: int = 0, half: str = "") -> Fact:
    """A time of the day; `half` is am or pm where that is said."""
    told = hour
    if half and hour <= 12:
        hour = hour % 12 + (12 if half == "pm" else 0)
    bare = frozenset(map(Fraction, (told, hour, hour % 12))) if not minute and not second else frozenset()
    return Fact("clock", frozenset({f"{hour % 24}:{minute:02}:{second:02}"}), bare=bare)


def day_month(day: int, month: int, year: int = 0) -> Fact:
    """A date whose parts are known."""
    return Fact("date", frozenset({f"{month}-{day}"}), year)


def numeric_date(first: int, sign: str, second: int, year: int) -> Fact | None:
    """Day and month in figures: with a stroke either may come first."""
    readings = {f"{month}-{day}" for day, month in ((first, second), (second, first)) if month <= 12 and day <= 31}
    if sign == "." and second <= 12:
        readings = {f"{second}-{first}"}
    if not readings:
        return None
    order = f"{first}/{second}" if sign != "." else ""
    return Fact("date", frozenset(readings), year, order)


def number(text: str, *, comma_decimal: bool) -> Fraction:
    """The value of figures in any grouping."""
    text = re.sub(r"[\s'’_]", "", text)
    points, commas = text.count("."), text.count(",")
    if points and commas:
        decimal = max(".,", key=text.rfind)
        text = text.replace("," if decimal == "." else ".", "").replace(decimal, ".", 1)
    elif points or commas:
        sign = "." if points else ","
        after = len(text) - text.rfind(sign) - 1
        groups = points + commas > 1 or (after == 3 and (sign == ",") != comma_decimal and text[0] != "0")
        text = text.replace(sign, "" if groups else ".")
    return Fraction(text if text.count(".") <= 1 else text.replace(".", ""))


# -- money below zero ------------------------------------------------------------------------------
OWED = "\ue001"
"""The sign of an amount of money below zero, right before its figures."""
_MONEY = r"(?:US\$|R\$|[$€£¥₹₽])"
_BEFORE = re.compile(rf"(?<![\w$€£¥₹₽%)])[-−–]({_MONEY}\s?)(?=\d)")
_BEHIND = re.compile(rf"(?<!\d)(?<!\d\s)({_MONEY})[-−](?=\d)")
_SAID = r"is|was|are|were|of|to|at|now|ist|war|beträgt|est|était|es|era|è|é|wynosi"
_MINUS = re.compile(
    rf"((?:^|[:=|]|\b(?:{_SAID})\b)[ \t]*)(?:minus|(?<=\w[ ])[-−–])[ \t]({_MONEY}[ \t]?)(?=\d)", re.I | re.M
)
_IN_BRACKETS = re.compile(
    rf"((?:^|[:=|]|\b(?:{_SAID})\b)[ \t]*)\((?:({_MONEY})\s?(\d[\d.,]*)|(\d[\d.,]*\s?{_MONEY}))\)", re.I | re.M
)
"""As accounts write it, where the amount itself would stand; `the fee ($50) is due` owes nothing."""


def signed(text: str) -> str:
    """The text with one sign for money below zero, however that is written: `-$50`, `$-50`, `is ($50)`."""
    text = _BEFORE.sub(rf"\1{OWED}", text)
    text = _BEHIND.sub(rf"\1{OWED}", text)
    text = _MINUS.sub(rf"\1\2{OWED}", text)
    return _IN_BRACKETS.sub(lambda m: f"{m[1]}{m[2] or ''}{OWED}{m[3] or m[4]}", text)


# -- Chinese and Japanese --------------------------------------------------------------------------
_DIGITS = {
    sign: n
    for n, signs in enumerate(("零〇", "一", "二两", "三", "四", "五", "六", "七", "八", "九"))
    for sign in signs
}
_TENS = {"十": 10, "百": 100, "千": 1000}
_COUNTED = "元块円圆天日周年月小分秒个人次件台点時时名位条份岁歳週本枚万亿億度公米克升%つ個冊回"
_SIGNS = "零〇一二两三四五六七八九十百千"
_NUMERAL = re.compile(rf"(?<![{_SIGNS}])[{_SIGNS}]{{1,20}}(?=[{_COUNTED}])")
_HOUR = re.compile(r"(上午|下午|早上|晚上|中午|午前|午後)?\s*(\d{1,2})(?:点|時|时)(?!间|間)(半|(\d{1,2})分?)?")
_LATE = ("下午", "晚上", "午後")


def western(text: str) -> str:
    """The text with its numerals and clock times in figures."""
    text = _NUMERAL.sub(lambda m: str(_value(m[0])), text)
    return _HOUR.sub(_hour, text)


def _value(numeral: str) -> int:
    total, digit = 0, 0
    for sign in numeral:
        if sign in _TENS:
            total, digit = total + (digit or 1) * _TENS[sign], 0
        else:
            digit = digit * 10 + _DIGITS[sign]
    return total + digit


def _hour(found: re.Match[str]) -> str:
    hour = int(found[2]) % 24
    if found[1] in _LATE and hour < 12:
        hour += 12
    minute = 30 if found[3] == "半" else int(found[4] or 0)
    return f" {hour}:{minute:02} "
