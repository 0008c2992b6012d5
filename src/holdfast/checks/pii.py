"""Finding personal data and secrets: a shape first, then the rules of its kind. Precision before recall."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Sighting(NamedTuple):
    """A piece of personal data: what kind, and where."""

    kind: str
    start: int
    end: int


Span = tuple[int, int]

# Words before a number that say it is something of a shop's or a machine's own.
_LABELLED = re.compile(
    r"\b(?:order|invoice|tracking|ticket|reference|ref|confirmation|transaction|isbn|sku|serial|part|case|item|batch|build)"
    r"\s*(?:(?:number|no|nr|id|code)\b\.?)?(?:\s+(?:is|was))?\s*[:#=]?\s*[#\"'(]?$",
    re.IGNORECASE,
)
_PHONE_WORD = re.compile(
    r"\b(?:phone|call|tel|telephone|mobile|cell|fax|whatsapp|text|reach|dial)\b[^\d\n]{0,24}$", re.I
)
_SSN_WORD = re.compile(r"\b(?:ssn|social security)\b[^\d\n]{0,24}$", re.IGNORECASE)
_VERSION_WORD = re.compile(r"(?:\bv|\bversion|\brelease|\bbuild|[=~^<>])\s*:?\s*$", re.IGNORECASE)

_EMAIL = re.compile(r"(?<![\w.+/-])[\w.%+-]{1,64}@(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?![\w@-])(?!:[\w~/])", re.I)
_FILE_ENDING = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|ico|js|ts|css|json|py|md|txt|html?)$", re.IGNORECASE)
_CARD = re.compile(r"(?<![\w.-])(?:\d{4}([ -]?)\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -]?)\d{6}\2\d{4,5})(?![\w-]|\.\d)")
_CARD_ISSUER = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|(?:6011|65\d\d|64[4-9]\d|35\d\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17}"
)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)", re.IGNORECASE)
_SSN = re.compile(r"(?<![\w.-])\d{3}([- ]?)\d{2}\1\d{4}(?![\w-]|\.\d)")
_INTERNATIONAL = re.compile(r"(?<![\w+])\+\d(?:[ ().-]{0,2}\d){6,14}(?!\w)")
_NATIONAL = re.compile(r"(?<![\w.+-])(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}([ .-]?))\d{3}[ .-]?\d{4}(?![\w-]|\.\d)")
_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\w)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-f]{1,4}:[0-9a-f:]{4,34}(?![\w:])", re.IGNORECASE)
_API_KEY = re.compile(
    r"(?<![\w-])(?:sk-(?:ant-|proj-|svcacct-|or-)?[\w-]{20,}|[rs]k_(?:live|test)_\w{16,}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{35}"
    r"|gh[pousr]_\w{36,}|github_pat_\w{22,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,}|hf_[A-Za-z]{30,}|npm_\w{36}"
    r"|SG\.[\w-]{16,}\.[\w-]{16,}|pypi-[\w-]{40,}|gsk_\w{40,}|r8_\w{30,})(?![\w-])"
)
_SECRET = re.compile(
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----|(?<![\w.-])eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"
    r"|\b[a-z][a-z0-9+]{1,20}://[^\s:/@]{1,64}:[^\s:/@]{3,64}@[\w.-]+",
    re.IGNORECASE,
)


def _before(text: str, start: int) -> str:
    return text[max(0, start - 48) : start]


def _spans(shape: re.Pattern[str], text: str) -> Iterator[Span]:
    return (match.span() for match in shape.finditer(text))


def emails(text: str) -> Iterator[Span]:
    for start, end in _spans(_EMAIL, text) if "@" in text else ():
        if not _FILE_ENDING.search(text, start, end):
            yield start, end


def cards(text: str) -> Iterator[Span]:
    from stdnum import luhn

    for start, end in _spans(_CARD, text):
        digits = re.sub(r"\D", "", text[start:end])
        if _CARD_ISSUER.fullmatch(digits) and luhn.is_valid(digits) and not _LABELLED.search(_before(text, start)):
            yield start, end


def ibans(text: str) -> Iterator[Span]:
    from stdnum import iban

    for start, end in _spans(_IBAN, text):
        while end - start >= 15:  # The shape may have run into the next word: cut it back.
            if iban.is_valid(text[start:end]):
                yield start, end
                break
            end = max(text.rfind(" ", start, end), start)


def ssns(text: str) -> Iterator[Span]:
    from stdnum.us import ssn

    for start, end in _spans(_SSN, text):
        number = text[start:end].replace(" ", "-")
        if "-" not in text[start:end] and not _SSN_WORD.search(_before(text, start)):
            continue
        if ssn.is_valid(number) and not _LABELLED.search(_before(text, start)):
            yield start, end


def phones(text: str) -> Iterator[Span]:
    for start, end in _spans(_INTERNATIONAL, text):
        if _rings(text[start:end]):
            yield start, end
    for start, end in _spans(_NATIONAL, text):
        number, before = text[start:end], _before(text, start)
        if _LABELLED.search(before) or (number.isdecimal() and not _PHONE_WORD.search(before)):
            continue
        # Area code 555 does not exist; made-up people in test data have it.
        if _rings(number) or re.match(r"\D*(?:1\D)?\D*555\D", number):
            yield start, end


def _rings(number: str) -> bool:
    """Whether the number can be given to someone, by the numbering plan of its country (else the US)."""
    import phonenumbers

    try:
        return bool(phonenumbers.is_valid_number(phonenumbers.parse(number, "US")))
    except phonenumbers.NumberParseException:
        return False


def addresses(text: str) -> Iterator[Span]:
    for start, end in _spans(_IPV4, text):
        if _points_at_someone(text[start:end]) and not _VERSION_WORD.search(_before(text, start)):
            yield start, end
    for start, end in _spans(_IPV6, text) if "::" in text or text.count(":") > 6 else ():
        if _points_at_someone(text[start:end].rstrip(":")):
            yield start, end


def _points_at_someone(address: str) -> bool:
    """Public addresses, and those set aside for examples; not those of any private network."""
    import ipaddress

    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if ip.version == 6:
        return ip in ipaddress.ip_network("2000::/3")
    examples = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
    return (ip.is_global and not ip.is_multicast) or any(ip in ipaddress.ip_network(net) for net in examples)


def api_keys(text: str) -> Iterator[Span]:
    return _spans(_API_KEY, text)


def secrets(text: str) -> Iterator[Span]:
    return _spans(_SECRET, text)


FINDERS: dict[str, Callable[[str], Iterable[Span]]] = {
    "api_key": api_keys,
    "secret": secrets,
    "email": emails,
    "iban": ibans,
    "credit_card": cards,
    "us_ssn": ssns,
    "phone": phones,
    "ip_address": addresses,
}
"""By kind, the surest first: what one has found, a later one does not find again."""


def sightings(text: str, kinds: Iterable[str]) -> list[Sighting]:
    """Everything of these kinds in the text, in its order; no two overlap."""
    wanted = set(kinds)
    found: list[Sighting] = []
    taken = bytearray(len(text))
    for kind, finder in FINDERS.items():
        for start, end in finder(text) if kind in wanted else ():
            if taken.find(1, start, end) < 0:
                taken[start:end] = b"\1" * (end - start)
                found.append(Sighting(kind, start, end))
    return sorted(found, key=lambda s: s.start)
