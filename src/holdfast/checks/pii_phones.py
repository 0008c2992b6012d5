"""Finds phone numbers: international ones by their country's numbering plan, national ones by their notation.

A numbering plan cannot identify a national number, because nearly any nine digits are valid in some country. So the
notation decides; where other numbers share it, a word such as "call" must precede the number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.checks.pii_text import Span, get_preceding_text, has_other_label, has_phone_word

_LEFT = r"(?<![0-9A-Za-z_+])(?<![0-9][.,/-])(?<![A-Za-z]-)"
_RIGHT = r"(?![0-9A-Za-z_])(?![.,/-][0-9])(?! ?[€$£%])"
_INTERNATIONAL = re.compile(r"(?<![\w+])(?:\+|00(?=[1-9]))[0-9](?:[ ()./-]{0,3}[0-9]){6,14}(?![0-9])", re.ASCII)
_CANDIDATE = re.compile(rf"{_LEFT}\(?[0-9](?:[ ()./-]{{0,3}}[0-9]){{6,12}}{_RIGHT}")
_PAIR = re.compile("[0-9]{2}")
_NEXT_GROUP = re.compile(" ([0-9]+)")
_DATE = re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1(?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}([./-])[0-9]{1,2}\2[0-9]{1,2}")

_S = "[ .-]"
_SURE = re.compile(  # notations that only phone numbers have
    rf"0[1-9](?:{_S}[0-9]{{2}}){{4}}"  # France
    rf"|\(0[1-9][0-9]{{0,4}}\)[ ]?[0-9]{{2,4}}(?:{_S}?[0-9]{{2,5}}){{1,3}}"  # UK, Australia, Germany
    r"|0[1-9][0-9]{1,4} ?[ /-] ?[0-9]{3,8}(?:[ -][0-9]{2,5}){0,3}"  # UK, Germany, Netherlands, Korea, Japan
    r"|0[1-9]-[0-9]{3,8}(?:[ -][0-9]{2,4}){0,3}"  # Japan, Netherlands
    rf"|0[1-9] [0-9]{{4}}{_S}?[0-9]{{3,4}}|06 [0-9]{{8}}"  # Italy, Australia, Netherlands
    rf"|0[1-9][0-9]{{1,2}}(?:{_S}[0-9]{{2,3}}){{3,4}}"  # Switzerland, Belgium, Turkey, Ukraine, Sweden
    rf"|\([1-9][0-9]\)[ ]?9?[0-9]{{4}}[ -][0-9]{{4}}"  # Brazil, Mexico
    rf"|[1-9][0-9] 9[0-9]{{4}}-[0-9]{{4}}"
    r"|8[ -]?\([0-9]{3,5}\)[ -]?[0-9]{1,3}[ -][0-9]{2}[ -]?[0-9]{2}"  # Russia
    r"|8[ -][0-9]{3}[ -][0-9]{3}[ -][0-9]{2}[ -]?[0-9]{2}"
    rf"|1[3-9][0-9][ -][0-9]{{4}}[ -][0-9]{{4}}"  # China
    rf"|[6789][0-9]{{2}} [0-9]{{2}} [0-9]{{2}} [0-9]{{2}}"  # Spain
)
_LIKELY = re.compile(  # notations that other numbers share; a word must announce the phone number
    rf"0[1-9][0-9]{{7,10}}|1[3-9][0-9]{{9}}|[6-9][0-9]{{4}}[ -]?[0-9]{{5}}|[78][0-9]{{10}}"
    rf"|[1-9][0-9]{{2}}{_S}?[0-9]{{3}}{_S}?[0-9]{{3,4}}|[1-9][0-9]{_S}?[0-9]{{3}}{_S}?[0-9]{{2}}{_S}?[0-9]{{2}}"
    rf"|[1-9][0-9](?:{_S}[0-9]{{2}}){{3}}|3[0-9]{{2}}[ .-]?[0-9]{{6,7}}"
    rf"|[1-9][0-9]{{3}}{_S}[0-9]{{4}}|[1-9][0-9]{{1,2}}{_S}[0-9]{{3,4}}{_S}[0-9]{{4}}|[6-9][0-9]{{2}}{_S}[0-9]{{3}}{_S}[0-9]{{4}}"
    rf"|[1-9][0-9]{{2}}{_S}[0-9]{{2}}{_S}[0-9]{{3}}|[2-9][0-9]{{7}}"
)
_AMERICAN = re.compile(r"(?:1[ .-])?(?:\([0-9]{3}\) ?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}")


def find_phones(text: str) -> Iterator[Span]:
    for match in _INTERNATIONAL.finditer(text):
        if _is_possible_number(match[0], has_phone_word(get_preceding_text(text, match.start()))):
            yield match.span()
    for match in _CANDIDATE.finditer(text):
        if _PAIR.search(match[0]) and (span := _find_national_number(text, *match.span())):
            yield span


def _find_national_number(text: str, start: int, end: int) -> Span | None:
    """Return the span of a national phone number, without an unclosed parenthesis or another number after it."""
    words = get_preceding_text(text, start)
    if has_other_label(words) or _DATE.match(text, start, end):
        return None
    announced = has_phone_word(words, text[end : end + 16])
    # The candidate may include a number that follows. Groups are cut from its end until the rest is a phone number.
    while end > start:
        candidate = text[start:end].rstrip(" ()./-")
        if _SURE.fullmatch(candidate) and 9 <= sum(map(str.isdigit, candidate)) <= 12:
            return start, start + len(candidate)
        if announced and _LIKELY.fullmatch(candidate):
            return start, start + len(candidate)
        if _AMERICAN.fullmatch(candidate) and (_is_us_number(candidate) or re.match(r"\D*(?:1\D)?\D*555\D", candidate)):
            # Area code 555 does not exist, but invented people in test data have it.
            return start, start + len(candidate)
        end = text.rfind(" ", start, end)
        if _has_equal_group(text, start, end):
            return None
    return None


def _has_equal_group(text: str, start: int, end: int) -> bool:
    """Whether a group as long as the last one follows; such a row of groups is not a phone number."""
    if end <= start:
        return False
    groups, follows = re.findall("[0-9]+", text[start:end]), _NEXT_GROUP.match(text, end)
    return bool(groups and follows and len(groups[-1]) == len(follows[1]))


def _is_possible_number(written: str, announced: bool) -> bool:
    """Whether an international number can exist."""
    import phonenumbers

    # "+" or a word such as "call" makes a phone number likely, so the right length is enough. After a bare 00 the
    # number must be in use in that country.
    number = written if written.startswith("+") else f"+{written[2:]}"
    try:
        parsed = phonenumbers.parse(number.replace("(0)", ""))
    except phonenumbers.NumberParseException:
        return False
    if (written.startswith("+") or announced) and len(set(str(parsed.national_number))) > 2:
        return bool(phonenumbers.is_possible_number(parsed))
    return bool(phonenumbers.is_valid_number(parsed))


def _is_us_number(number: str) -> bool:
    """Whether the number is valid in North America."""
    import phonenumbers

    try:
        return bool(phonenumbers.is_valid_number(phonenumbers.parse(number, "US")))
    except phonenumbers.NumberParseException:
        return False
