"""Dates in the forms that take several words, written as a day, a month and a year that stand by themselves."""

from __future__ import annotations

import re
from functools import cache
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
    text = forms.dashed.sub(r"\1 \2 \3", text)
    text = forms.weekdays.sub(r"\1 - \2", text)
    if lang.name == "en":
        text = forms.ordinal_last.sub(lambda m: f"{m[1]} {ORDINALS[m[2].casefold()]}", text)
        text = _NTH.sub(lambda m: f"{ORDINALS[m[0].casefold()]}th", forms.ordinal.sub(_in_figures, text))
    text = forms.days_of_month.sub(r"\1\6 \2 ", text)
    text = forms.month_of_days.sub(r"\1 \2 \3 \1 \4", text)
    return _NUMERIC_MONTH.sub(lambda m: f"{forms.months[int(m[1]) - 1]} {m[2]}", text)


def _in_figures(found: re.Match[str]) -> str:
    return f"{ORDINALS[found[1].casefold()]} {found[2]}"


_NTH = re.compile("|".join(rf"\b{word}\b" for word in ORDINALS if "-" in word), re.I)
_NUMERIC_MONTH = re.compile(r"(?<![\d/.-])(0?[1-9]|1[0-2])/((?:19|20)\d\d)(?![\d/])")


@cache
def _forms_of(name: str, months: tuple[str, ...], days: tuple[str, ...], firsts: tuple[str, ...]) -> DateForms:
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
        re.compile(rf"\b(?:the )?({ordinal}) (?:of )?({month})\b", re.I),
        re.compile(rf"\b({month}),? (?:the )?({ordinal})\b(?! \w*(?:time|half|quarter|one))", re.I),
        re.compile(rf"\b({weekday})\.?\s?[-–]\s?(?=({weekday})\b)({weekday})\b", re.I),
        firsts,
    )


def _forms(lang: Language) -> DateForms | None:
    months = tuple(w for w, told in lang.named.items() if told.startswith("month") and len(w) >= _SHORTEST)
    days = tuple(w for w, told in lang.named.items() if told.startswith("day") and len(w) >= _SHORTEST)
    if not months or not days:
        return None
    firsts = tuple(next(w for w, told in lang.named.items() if told == f"month {n}") for n in range(1, 13))
    return _forms_of(lang.name, months, days, firsts)
