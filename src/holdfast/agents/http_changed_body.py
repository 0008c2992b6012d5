"""Bodies that a mutation of the request makes of the agent's own. Pure; sizes are bounded here once more."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode
from xml.sax.saxutils import escape

SIZE_LIMIT = 1_000_000
"""No body is made larger."""
UNPACKED_LIMIT = 20_000_000
"""No packed body holds more."""
BOUNDARY = "holdfast-boundary"
_KEY = "holdfast_extra"


def changed_body(body: bytes, form: str, size: int) -> bytes:
    """The body made anew in this form, which is a name of FORMS; its size is never over the limit of the form."""
    return FORMS[form](body, max(0, size))


def _with_extra(body: bytes, value: bytes) -> bytes:
    """The body with one thing more in it that nobody asked for: a key of an object, an item of a list, else text."""
    kind = _kind(body)
    text = body.strip()
    if kind is dict:
        comma = b"" if text[1:-1].isspace() or text == b"{}" else b","
        return b'%b%b"%b":%b}' % (text[:-1], comma, _KEY.encode(), value)
    if kind is list:
        comma = b"" if text[1:-1].isspace() or text == b"[]" else b","
        return b"%b%b%b]" % (text[:-1], comma, value)
    return b"%b %b" % (body, value) if body else b'{"%b":%b}' % (_KEY.encode(), value)


def _kind(body: bytes) -> type | None:
    """Whether the body is an object or a list of JSON."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return type(value) if isinstance(value, dict | list) else None


def _pairs(body: bytes) -> list[tuple[str, str]]:
    """The body as names and values; one that is no object is the value of `input`."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        value = body.decode("utf-8", "replace")
    if not isinstance(value, dict):
        value = {"input": value}
    return [(str(k), v if isinstance(v, str) else json.dumps(v)) for k, v in value.items()]


def _packed(body: bytes, size: int, wbits: int) -> bytes:
    """The body behind so many blanks, packed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    blanks = min(size, UNPACKED_LIMIT)
    return packer.compress(b" " * blanks) + packer.compress(body) + packer.flush()


def _xml(body: bytes, size: int) -> bytes:
    fields = "".join(f"<field name={_attribute(name)}>{escape(value)}</field>" for name, value in _pairs(body))
    return f'<?xml version="1.0" encoding="UTF-8"?><request>{fields}</request>'.encode("utf-8", "replace")


def _attribute(text: str) -> str:
    return '"' + escape(text, {'"': "&quot;"}) + '"'


def _entities(body: bytes, size: int) -> bytes:
    """XML whose entities grow tenfold a level."""
    levels = min(size, 9)
    grown = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, levels + 1))
    head = f'<?xml version="1.0"?><!DOCTYPE request [<!ENTITY e0 "x">{grown}]>'
    return f"{head}<request>&e{levels};</request>".encode()


def _multipart(body: bytes, size: int) -> bytes:
    parts = [
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; name={_attribute(name)}\r\n\r\n{value}\r\n"
        for name, value in _pairs(body)
    ]
    return f"{''.join(parts)}--{BOUNDARY}--\r\n".encode("utf-8", "replace")


def _form(body: bytes, size: int) -> bytes:
    pairs = [(name.encode("utf-8", "replace"), value.encode("utf-8", "replace")) for name, value in _pairs(body)]
    return urlencode(pairs).encode()


def _utf16(body: bytes, size: int) -> bytes:
    return body.decode("utf-8", "replace").encode("utf-16")


def _fields(body: bytes, size: int) -> bytes:
    """An object of so many keys."""
    return _with_extra(body, b"{%b}" % b",".join(b'"k%d":0' % n for n in range(min(size, 60_000))))


def _nested(opening: bytes, closing: bytes) -> Callable[[bytes, int], bytes]:
    def made(body: bytes, size: int) -> bytes:
        levels = min(size, SIZE_LIMIT // (len(opening) + len(closing)))
        return _with_extra(body, opening * levels + b"0" + closing * levels)

    return made


def _twice(body: bytes, size: int) -> bytes:
    """A JSON object with every key a second time, the values being null: which one counts is up to the reader."""
    again = ",".join(f"{json.dumps(name)}:null" for name, _ in _pairs(body)) if _kind(body) is dict else ""
    return b"{%b,%b" % (again.encode(), body.strip()[1:]) if again else body + body


FORMS: Mapping[str, Callable[[bytes, int], bytes]] = {
    # size: bytes
    "blanks_before": lambda body, size: b" " * min(size, SIZE_LIMIT) + body,
    "blanks_behind": lambda body, size: body + b" " * min(size, SIZE_LIMIT),
    "long_string": lambda body, size: _with_extra(body, b'"%b"' % (b"a" * min(size, SIZE_LIMIT))),
    "long_number": lambda body, size: _with_extra(body, b"9" * min(size, SIZE_LIMIT)),
    "gzip": lambda body, size: _packed(body, size, 31),
    "deflate": lambda body, size: _packed(body, size, 15),
    "cut": lambda body, size: body[: len(body) // 2],
    "empty": lambda body, size: b"",
    # size: items or levels
    "array": lambda body, size: _with_extra(body, b"[0%b]" % (b",0" * min(size, SIZE_LIMIT // 2))),
    "fields": _fields,
    "nested_lists": _nested(b"[", b"]"),
    "nested_objects": _nested(b'{"a":', b"}"),
    "entities": _entities,
    # other formats and encodings
    "same": lambda body, size: body or b"{}",
    "xml": _xml,
    "multipart": _multipart,
    "form": _form,
    "utf16": _utf16,
    "latin1_bytes": lambda body, size: _with_extra(body, b'"\xe9\xff\xfe"'),
    "twice": _twice,
}
"""Every form by its name."""
