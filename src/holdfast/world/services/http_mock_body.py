"""What the body of a request says: its content encoding undone, its charset read. Pure, and of bounded size."""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Iterable
from email.message import Message
from typing import NamedTuple

_LAYERS = 4
"""Content encodings one over the other that are undone."""
_BITS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}
"""Some clients send deflate without its frame."""
_CHARSETS = ("utf", "ascii", "iso8859", "cp125", "koi8", "gb", "big5", "shift_jis", "euc")
"""How names of charsets begin that are read: others take long with a long text, or are no text."""


class Body(NamedTuple):
    """A body as text."""

    text: str
    cut: bool = False
    """There is more of it than is kept."""
    unread: str = ""
    """Why the text is not what was meant."""


class _Unreadable(Exception):
    """The body cannot be understood."""


def body_of(headers: Iterable[tuple[str, str]], data: bytes, limit: int, *, cut: bool) -> Body:
    """The body as a server would read it, at most `limit` bytes of it; `cut`: the data is only its beginning."""
    said: dict[str, list[str]] = {}
    for name, value in headers:
        said.setdefault(name.lower(), []).append(value)
    try:
        plain, longer = _unpacked(",".join(said.get("content-encoding", ())), data, limit, cut=cut)
        charset = _charset(said.get("content-type", [""])[0], plain)
    except _Unreadable as why:
        return Body(data.decode("utf-8", "replace"), cut, str(why))
    return Body(plain.decode(charset, "replace"), cut or longer)


def _unpacked(encodings: str, data: bytes, limit: int, *, cut: bool) -> tuple[bytes, bool]:
    """The data without its encodings, and whether there is more."""
    names = [name for one in encodings.split(",") if (name := one.strip().lower()) not in ("", "identity")]
    if len(names) > _LAYERS:
        raise _Unreadable(f"it has {len(names)} content encodings")
    longer = False
    for name in reversed(names):
        if name not in _BITS:
            raise _Unreadable(f"its content encoding {name[:20]} is not known here")
        data, longer = _inflated(name, data, limit, whole=not (cut or longer))
    return data, longer


def _inflated(name: str, data: bytes, limit: int, *, whole: bool) -> tuple[bytes, bool]:
    for bits in _BITS[name]:
        try:
            return _members(bits, data, limit, whole=whole)
        except zlib.error:
            continue
    raise _Unreadable(f"it is no {name}, though its content encoding says so")


def _members(bits: int, data: bytes, limit: int, *, whole: bool) -> tuple[bytes, bool]:
    """Every member: gzip may have several, one behind the other. Never more than the limit is made."""
    found = b""
    while data:
        member = zlib.decompressobj(bits)
        found += member.decompress(data, limit + 1 - len(found))
        if len(found) > limit:
            return found[:limit], True
        if not member.eof and whole:
            raise zlib.error("it has no end")
        data = member.unused_data
    return found, False


def _charset(content_type: str, data: bytes) -> str:
    """The one that is named; of JSON without one, what its first bytes say."""
    message = Message()
    message["content-type"] = content_type or "text/plain"
    named = message.get_param("charset")
    if not isinstance(named, str) or not named:
        return json.detect_encoding(data) if message.get_content_type().endswith("json") else "utf-8"
    try:
        name = codecs.lookup(named).name
    except (LookupError, ValueError):
        name = ""
    if not name.startswith(_CHARSETS):
        raise _Unreadable(f"its charset {named[:20]} is not known here")
    return name
