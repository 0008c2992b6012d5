"""Finds numbers that can be validated: cards by issuer, length and Luhn, IBANs by country and mod 97, US SSNs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.checks.pii_text import Span, get_preceding_text, has_other_label

# Chinese and Japanese put no space around numbers, so only digits, Latin letters and number punctuation extend one.
_LEFT = r"(?<![0-9A-Za-z_])(?<![0-9][.,-])"
_RIGHT = r"(?![0-9A-Za-z_])(?![.,-][0-9])"

_GROUPS = re.compile(  # letters may directly precede it: 'Visa4111…'
    r"(?<![0-9])(?<![0-9][.,-])"
    rf"(?:[0-9]{{12,19}}|[0-9]{{4,8}}([ .-])[0-9]{{4,}}(?:\1[0-9]+){{0,6}}){_RIGHT}"
)
_CARD_SHAPE = re.compile(  # other numbers use these separators too, so the groups must be those of a card
    r"(?<![0-9])(?:[0-9]{4}([/_]|[ \t]*\r?\n[ \t]*)(?:[0-9]{4}\1){2}[0-9]{4}"
    r"|[0-9]{4}([/_]|[ \t]*\r?\n[ \t]*)[0-9]{6}\2[0-9]{5})(?![0-9])"
)
_ISSUER = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|220[0-4][0-9]{12,15}"  # Mir
    r"|3[47][0-9]{13}"  # American Express
    r"|3(?:0[0-59]|[689][0-9])(?:[0-9]{11}|[0-9]{13})"  # Diners Club
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12,15}"  # JCB
    # Discover, UnionPay, RuPay, InstaPayment
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|62[0-9]{2}|81[0-9]{2}|60[0-9]{2}|63[67][0-9])[0-9]{12,15}"
    r"|(?:5018|5019|5020|5038|5893|6304|6390|6759|676[1-3])[0-9]{8,15}"  # Maestro, Dankort
    r"|(?:50[0-9]{2}|5[6-8][0-9]{2}|6[0-9]{3}|9792|9860|8600)[0-9]{12}|67[0-9]{16,17}"  # Verve, Elo, Troy, Humo, Uzcard
)
_IBAN = re.compile(rf"{_LEFT}[A-Z]{{2}}[0-9]{{2}}(?:[ -]?[A-Z0-9]){{11,29}}", re.IGNORECASE)
_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 "
    "EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 "
    "KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 "
    "PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 "
    "UA29 VA22 VG24 XK20 YE30"
)
IBAN_LENGTHS = {one[:2]: int(one[2:]) for one in _LENGTHS.split()}
"""The length of an IBAN by country, as in the IBAN registry."""
_SSN = re.compile(rf"{_LEFT}[0-9]{{3}}([- ]?)[0-9]{{2}}\1[0-9]{{4}}{_RIGHT}")
_SSN_WORD = re.compile(r"\b(?:ssn|social security)\b[^\d\n]{0,24}$", re.IGNORECASE)


def find_cards(text: str) -> Iterator[Span]:
    """Yield card numbers, whatever word precedes them: the issuer's prefix and the check digit decide."""
    for match in _GROUPS.finditer(text):
        groups = [
            (match.start() + group.start(), match.start() + group.end()) for group in re.finditer("[0-9]+", match[0])
        ]
        yield from _find_card_groups(text, groups)
    for match in _CARD_SHAPE.finditer(text):
        if _is_card(match[0], [4, 4]):
            yield match.span()


def _find_card_groups(text: str, groups: list[Span]) -> Iterator[Span]:
    """Yield the runs of digit groups that are cards."""
    # Other numbers may precede or follow a card: from each group, the longest run that validates is taken.
    first = 0
    while first < len(groups):
        for last in range(len(groups), first, -1):
            span = groups[first][0], groups[last - 1][1]
            if _is_card(text[span[0] : span[1]], [end - start for start, end in groups[first:last]]):
                yield span
                first = last - 1
                break
        first += 1


def _is_card(number: str, lengths: list[int]) -> bool:
    from stdnum import luhn

    if len(lengths) > 1 and min(lengths[:-1]) < 4:
        return False
    digits = re.sub("[^0-9]", "", number)
    return bool(_ISSUER.fullmatch(digits)) and luhn.is_valid(digits)


def find_ibans(text: str) -> Iterator[Span]:
    for match in _IBAN.finditer(text):
        length = IBAN_LENGTHS.get(match[0][:2].upper(), 0)
        places = [place.start() for place in re.finditer("[A-Z0-9]", match[0], re.IGNORECASE)]
        if not 0 < length <= len(places):
            continue
        end = match.start() + places[length - 1] + 1
        if not re.match("[0-9A-Za-z_]", text[end : end + 1]) and _has_valid_checksum(text[match.start() : end]):
            yield match.start(), end


def _has_valid_checksum(iban: str) -> bool:
    number = re.sub("[ -]", "", iban).upper()
    return int("".join(str(int(sign, 36)) for sign in number[4:] + number[:4])) % 97 == 1


def find_ssns(text: str) -> Iterator[Span]:
    from stdnum.us import ssn

    for match in _SSN.finditer(text):
        words = get_preceding_text(text, match.start())
        if "-" not in match[0] and not _SSN_WORD.search(words):
            continue
        if ssn.is_valid(match[0].replace(" ", "-")) and not has_other_label(words):
            yield match.span()
