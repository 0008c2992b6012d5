"""Dates in the forms that take several words, written as a day, a month and a year that stand by themselves."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.checks.text.languages import Language
from holdfast.checks.text.numerals import ORDINALS

_JOINTS = "to|until|till|and|bis zum|bis|und|au|et|al|y|a|e|tot|en|do|i|по|и|-|–"
_SHORTEST = 3
"""Letters of a month or weekday; shorter names mean too much else."""


class DateForms(NamedTuple):
    """What finds the forms of one language."""

    days_of_month: re.Pattern[str]
    """`1 to 5 June`"""
    month_of_days: re.Pattern[str]
    """`June 1-5`"""
    dashed: re.Pattern[str]
    """`5-Jun-2024`"""
    ordinal: re.Pattern[str]
    """`the first of June`"""
    ordinal_last: re.Pattern[str]
    """`June the first`"""
    weekdays: re.Pattern[str]
    """`Mon-Fri`"""
    months: tuple[str, ...]


def separate(text: str, lang: Language) -> str:
    """The text with each of its dates told in full."""
    forms = _forms(lang)
    if forms is None:
        return text
    if "-" in text or "–" in text:
        text = forms.weekdays.sub(r"\1 - \2", forms.dashed.sub(r"\1 \2 \3", text))
        text = _NTH.sub(lambda m: f"{ORDINALS[m[0].casefold()]}th", text)
    if lang.name == "en":
        text = forms.ordinal_last.sub(lambda m: f"{m[1]} {ORDINALS[m[2].casefold()]}", text)
        text = forms.ordinal.sub(_in_figures, text)
    if not _DIGIT.search(text):
        return text
    text = forms.days_of_month.sub(r"\1\6 \2 ", text)
    text = forms.month_of_days.sub(r"\1 \2 \3 \1 \4", text)
    return _NUMERIC_MONTH.sub(lambda m: f"{forms.months[int(m[1]) - 1]} {m[2]}", text)


def _in_figures(found: re.Match[str]) -> str:
    day = ORDINALS.get(found[1].casefold())
    return f"{day} {found[2]}" if day else found[0]


_NTH = re.compile(
    r"\b(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
    r"-(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)\b",
    re.I,
)
_DIGIT = re.compile(r"\d")
_NUMERIC_MONTH = re.compile(r"(?<![\d/.-])(0?[1-9]|1[0-2])/((?:19|20)\d\d)(?![\d/])")


def _forms(lang: Language) -> DateForms | None:
    if lang.name not in _known:
        _known[lang.name] = _of(lang)
    return _known[lang.name]


_known: dict[str, DateForms | None] = {}


def _of(lang: Language) -> DateForms | None:
    months, days = (
        tuple(w for w, told in lang.named.items() if told.startswith(kind) and len(w) >= _SHORTEST)
        for kind in ("month", "day")
    )
    if not months or not days:
        return None
    month, weekday, ordinal = ("|".join(sorted(map(re.escape, names), key=len, reverse=True))
                               for names in (months, days, ORDINALS))  # fmt: skip
    day = r"\d{1,2}(?:\.(?=\s)|st|nd|rd|th|º|er)?"
    joint = rf"(?:\s?[-–]\s?|\s(?:{_JOINTS})\s)"
    return DateForms(
        re.compile(
            rf"(?<![\d:/.,])({day})({joint})(?:the )?(?=({day})(\s(?:de |of )?)({month})\b)(?=\3((?:\4)\5))", re.I
        ),
        re.compile(rf"\b({month})\s({day})({joint})({day})(?![\d:/%]|[.,]\d|\s(?:{month})\b)", re.I),
        re.compile(rf"\b(\d{{1,2}})-({month})-(\d{{4}})\b", re.I),
        re.compile(rf"\b(?:the )?([a-z-]{{1,24}}(?:st|nd|rd|th)) (?:of )?({month})\b", re.I),
        re.compile(rf"\b({month}),? (?:the )?({ordinal})\b(?! \w*(?:time|half|quarter|one))", re.I),
        re.compile(rf"\b({weekday})\.?\s?[-–]\s?(?=({weekday})\b)({weekday})\b", re.I),
        tuple(next(w for w, told in lang.named.items() if told == f"month {n}") for n in range(1, 13)),
    )
