"""Numbers that are written as one word: `zweiundzwanzig`, `ventidue`, `twenty-first`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

_NTH = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def _ordinals() -> Iterator[tuple[str, int]]:
    names = _NTH.split()
    yield from zip(names, range(1, 21), strict=True)
    for n, ten in enumerate(_TENS.split(), 2):
        yield f"{ten.removesuffix('y')}ieth", 10 * n
        for unit, name in enumerate(names[:9], 1):
            yield f"{ten}-{name}", 10 * n + unit


ORDINALS = dict(_ordinals())
"""By English word, from `first` to `ninety-ninth`."""


def compounds(name: str, numbers: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Of a language that joins tens and units: the words from 21 to 99, from those of its units and tens."""
    found = {}
    for ten, tens in numbers.items():
        if 20 <= tens <= 90 and tens % 10 == 0:
            for unit, units in numbers.items():
                if 1 <= units <= 9:
                    found.update(dict.fromkeys(_joined(name, ten, unit), tens + units))
    return found


def _joined(name: str, ten: str, unit: str) -> list[str]:
    if name == "de":
        return [f"{unit}und{ten}"]
    if name == "nl":
        return [f"{unit}en{ten}", f"{unit}ën{ten}"]
    if name == "it":
        return [(ten[:-1] if unit[0] in "uo" else ten) + ("tré" if unit == "tre" else unit), ten + unit]
    if name == "es" and ten == "veinte":
        accented = {"dos": "dós", "tres": "trés", "seis": "séis"}
        return [f"veinti{unit}", f"veinti{accented.get(unit, unit)}"]
    return [f"{ten}-{unit}"] if name == "fr" else []
