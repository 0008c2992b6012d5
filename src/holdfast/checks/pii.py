"""Finds personal data and secrets: a pattern first, then the rules of its kind. Prefers precision to recall."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from holdfast.checks.pii_numbers import Span, find_cards, find_ibans, find_phones, find_ssns, get_preceding_text
from holdfast.model.plain_text import to_plain_numbers


class Sighting(NamedTuple):
    """The kind and the span of a piece of personal data."""

    kind: str
    start: int
    end: int


# Words before four dotted numbers that make them a version and not an IP address.
_VERSION_WORD = re.compile(
    r"(?:\bv|\bver[sz]\w*|\bwersj\w*|верси\w*|\brelease|\bbuild|\bfirmware|\bdriver|\brevision|\bupdate|\bpatch"
    r"|版本号?|バージョン"
    r"|الإصدار|संस्करण|[=~^<>])\s*:?\s*(?:(?:is|to|on|ist|auf|est|es|é|è|to)\s+)?$",
    re.IGNORECASE,
)

_EMAIL = re.compile(
    r"(?<![\w.+/-])[\w.%+'-]{1,64}@(?:[\w-]{1,63}\.){1,8}(?:[a-zA-Z]{2,24}(?![a-zA-Z0-9@_-])"
    r"|xn--[a-z0-9-]{2,59}|[^\W\d_a-zA-Z]{2,24})"
    r"(?!@)(?!:[\w~/])"
)
# Addresses spelled out to hide them from crawlers: 'ann (at) example (dot) org', 'ann.lee at example dot org'.
_AT = r" ?[(\[{<] ?(?:at|ät|arroba|arobase|chiocciola|apenstaartje|małpa|собака|@) ?[)\]}>] ?"
_DOT = r" ?[(\[{<] ?(?:dot|punkt|point|punto|ponto|punt|kropka|точка|\.) ?[)\]}>] ?"
_SIGN = re.compile(f"({_AT}| at )|{_DOT}| dot ", re.IGNORECASE)
_WORD = r"[\w%+'-]{1,64}"
_BRACKETED = re.compile(
    rf"(?<![\w.+/-]){_WORD}(?:(?:\.|{_DOT}){_WORD}){{0,4}}(?:@|{_AT}){_WORD}(?:(?:\.|{_DOT}){_WORD}){{0,5}}"
    rf"(?:\.|{_DOT})[^\W\d_]{{2,24}}(?![\w@-]|\.\w)",
    re.IGNORECASE,
)
_WORDED = re.compile(
    rf"(?<![\w.+/-])({_WORD}(?:(?:\.| dot | DOT ){_WORD}){{0,4}})(?: at | AT ){_WORD}"
    rf"(?:(?:\.| dot | DOT ){_WORD}){{0,5}}(?: dot | DOT )[^\W\d_]{{2,24}}(?![\w@-]|\.\w)"
)
_MAIL_WORD = re.compile(
    r"(?:mail|courriel|correo|adress|почт|邮箱|メール|البريد|ईमेल)\w*(?:\s+\w+)?\s*(?::|\b(?:is|to|ist|lautet|est|es|é|è|jest)\b)?\s*$",
    re.IGNORECASE,
)
_PRONOUNS = frozenset(("me", "us", "him", "her", "them", "it", "you"))
_LATIN_END = re.compile(r"[A-Za-z0-9.%+_'-]+$")
_IDEOGRAPH = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_FILE_ENDING = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|ico|js|ts|css|json|py|md|txt|html?)$", re.IGNORECASE)
_IPV4 = re.compile(r"(?<![0-9A-Za-z_.-])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z_-]|\.\w)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-f]{1,4}:[0-9a-f:]{4,34}(?![\w:])", re.IGNORECASE)
_API_KEY = re.compile(
    r"(?<![\w-])(?:sk-(?:ant-|proj-|svcacct-|or-)?[\w-]{20,}|[rs]k_(?:live|test)_\w{16,}|A(?:KIA"
    r"|SIA)[A-Z0-9]{16}|AIza[\w-]{35}"
    r"|gh[pousr]_\w{36,}|github_pat_\w{22,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,}|hf_[A-Za-z]{30,}|npm_\w{36}"
    r"|SG\.[\w-]{16,}\.[\w-]{16,}|pypi-[\w-]{40,}|gsk_\w{40,}|r8_\w{30,})(?![\w-])"
)
_SECRET = re.compile(
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----|(?<![\w.-])eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"
    r"|\b[a-z][a-z0-9+]{1,20}://[^\s:/@]{1,64}:[^\s:/@]{3,64}@[\w.-]+",
    re.IGNORECASE,
)


def _find_spans(shape: re.Pattern[str], text: str) -> Iterator[Span]:
    return (match.span() for match in shape.finditer(text))


def find_emails(text: str) -> Iterator[Span]:
    for start, end in _find_spans(_EMAIL, text) if "@" in text else ():
        if not _FILE_ENDING.search(text, start, end):
            yield start + _count_words_before(text[start : text.index("@", start)]), end

    yield from _find_spelled_emails(text) if _SIGN.search(text) else ()


def _find_spelled_emails(text: str) -> Iterator[Span]:
    for match in _BRACKETED.finditer(text):
        if _SIGN.search(match[0]):
            yield match.span()
    for match in _WORDED.finditer(text):
        # 'look at amazon dot com' is a website. It is an address only if the name has a dot, a digit or an underscore,
        # if the AT is in capitals, or if a word such as 'mail' precedes it.
        is_name = re.search(r"[^\W\d_]", match[1]) and re.search(r"[._\d]| dot ", match[1])
        shouted = " AT " in match[0] and match[1].islower()
        announced = match[1] not in _PRONOUNS and _MAIL_WORD.search(get_preceding_text(text, match.start()))
        if is_name or shouted or announced:
            yield match.span()


def to_mail_address(value: str) -> str:
    """Return a mail address with its `at` and `dot` replaced by the usual characters."""
    return _SIGN.sub(lambda sign: "@" if sign[1] else ".", value)


def _count_words_before(name: str) -> int:
    """Return the number of characters before a Latin name that follows them without a space, as in Chinese."""
    latin = _LATIN_END.search(name)
    return latin.start() if latin and latin.start() and _IDEOGRAPH.match(name[latin.start() - 1]) else 0


def find_addresses(text: str) -> Iterator[Span]:
    for start, end in _find_spans(_IPV4, text):
        if _is_identifying(text[start:end]) and not _VERSION_WORD.search(get_preceding_text(text, start)):
            yield start, end
    for start, end in _find_spans(_IPV6, text) if "::" in text or text.count(":") > 6 else ():
        if _is_identifying(text[start:end].rstrip(":")):
            yield start, end


def _is_identifying(address: str) -> bool:
    """Return whether the address is public or reserved for documentation; private networks do not count."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if ip.version == 6:
        return ip in ipaddress.ip_network("2000::/3")
    examples = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
    return (ip.is_global and not ip.is_multicast) or any(ip in ipaddress.ip_network(net) for net in examples)


FINDERS: dict[str, Callable[[str], Iterable[Span]]] = {
    "api_key": partial(_find_spans, _API_KEY),
    "secret": partial(_find_spans, _SECRET),
    "email": find_emails,
    "iban": find_ibans,
    "credit_card": find_cards,
    "us_ssn": find_ssns,
    "phone": find_phones,
    "ip_address": find_addresses,
}
"""Finders by kind, the most certain first. A span that one finder claims is closed to later ones."""


def find_pii(text: str, kinds: Iterable[str]) -> list[Sighting]:
    """Return all personal data of these kinds, in text order and without overlaps."""
    text, wanted = to_plain_numbers(text), set(kinds)
    result: list[Sighting] = []
    # One byte per character marks claimed text, so that a card number is not reported as a phone number too.
    claimed = bytearray(len(text))
    for kind, finder in FINDERS.items():
        for start, end in finder(text) if kind in wanted else ():
            if claimed.find(1, start, end) < 0:
                claimed[start:end] = b"\1" * (end - start)
                result.append(Sighting(kind, start, end))
    return sorted(result, key=lambda s: s.start)
