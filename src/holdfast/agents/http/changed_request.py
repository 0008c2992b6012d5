"""The bytes of a request that a mutation has changed. Pure.

It also writes what HTTP forbids: nothing is validated here.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode
from xml.sax.saxutils import escape

from msgspec import Struct

from holdfast.agents.http.request import HttpRequest, HttpUrl
from holdfast.model.task import RequestChange

SIZE_LIMIT = 1_000_000
"""Maximum size of a body."""
UNPACKED_LIMIT = 20_000_000
"""Maximum size of a compressed body's content."""
BOUNDARY = "holdfast-boundary"
_KEY = "holdfast_extra"


def _add_extra(body: bytes, value: bytes) -> bytes:
    """Return the body with one unexpected element: a key of an object, an item of a list, else text."""
    kind = _find_json_type(body)
    text = body.strip()
    if kind is dict:
        comma = b"" if text[1:-1].isspace() or text == b"{}" else b","
        return b'%b%b"%b":%b}' % (text[:-1], comma, _KEY.encode(), value)
    if kind is list:
        comma = b"" if text[1:-1].isspace() or text == b"[]" else b","
        return b"%b%b%b]" % (text[:-1], comma, value)
    return b"%b %b" % (body, value) if body else b'{"%b":%b}' % (_KEY.encode(), value)


def _find_json_type(body: bytes) -> type | None:
    """Return dict or list if the body is a JSON object or list; None otherwise."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return type(value) if isinstance(value, dict | list) else None


def _read_pairs(body: bytes) -> list[tuple[str, str]]:
    """Return the body as names and values; a body that is not an object is the value of `input`."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        value = body.decode("utf-8", "replace")
    if not isinstance(value, dict):
        value = {"input": value}
    return [(str(k), v if isinstance(v, str) else json.dumps(v)) for k, v in value.items()]


def _pack(body: bytes, size: int, wbits: int) -> bytes:
    """Return the body after so many spaces, compressed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    blanks = min(size, UNPACKED_LIMIT)
    return packer.compress(b" " * blanks) + packer.compress(body) + packer.flush()


def _write_xml(body: bytes, size: int) -> bytes:
    fields = "".join(
        f"<field name={_quote_attribute(name)}>{escape(value)}</field>" for name, value in _read_pairs(body)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><request>{fields}</request>'.encode("utf-8", "replace")


def _quote_attribute(text: str) -> str:
    return '"' + escape(text, {'"': "&quot;"}) + '"'


def _write_entities(body: bytes, size: int) -> bytes:
    """Return XML whose entities expand to ten times the size at each level."""
    levels = min(size, 9)
    grown = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, levels + 1))
    head = f'<?xml version="1.0"?><!DOCTYPE request [<!ENTITY e0 "x">{grown}]>'
    return f"{head}<request>&e{levels};</request>".encode()


def _write_multipart(body: bytes, size: int) -> bytes:
    parts = [
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; name={_quote_attribute(name)}\r\n\r\n{value}\r\n"
        for name, value in _read_pairs(body)
    ]
    return f"{''.join(parts)}--{BOUNDARY}--\r\n".encode("utf-8", "replace")


def _nest(opening: bytes, closing: bytes) -> Callable[[bytes, int], bytes]:
    def nest_body(body: bytes, size: int) -> bytes:
        levels = min(size, SIZE_LIMIT // (len(opening) + len(closing)))
        return _add_extra(body, opening * levels + b"0" + closing * levels)

    return nest_body


def _repeat_keys(body: bytes, size: int) -> bytes:
    """Return a JSON object with every key repeated with the value null: readers differ on which one counts."""
    again = (
        ",".join(f"{json.dumps(name)}:null" for name, _ in _read_pairs(body)) if _find_json_type(body) is dict else ""
    )
    return b"{%b,%b" % (again.encode(), body.strip()[1:]) if again else body + body


FORMS: Mapping[str, Callable[[bytes, int], bytes]] = {
    # size: bytes
    "blanks_before": lambda body, size: b" " * min(size, SIZE_LIMIT) + body,
    "blanks_behind": lambda body, size: body + b" " * min(size, SIZE_LIMIT),
    "long_string": lambda body, size: _add_extra(body, b'"%b"' % (b"a" * min(size, SIZE_LIMIT))),
    "long_number": lambda body, size: _add_extra(body, b"9" * min(size, SIZE_LIMIT)),
    "gzip": lambda body, size: _pack(body, size, 31),
    "deflate": lambda body, size: _pack(body, size, 15),
    "cut": lambda body, size: body[: len(body) // 2],
    "empty": lambda body, size: b"",
    # size: items or levels
    "array": lambda body, size: _add_extra(body, b"[0%b]" % (b",0" * min(size, SIZE_LIMIT // 2))),
    "fields": lambda body, size: _add_extra(
        body, b"{%b}" % b",".join(b'"k%d":0' % n for n in range(min(size, 60_000)))
    ),
    "nested_lists": _nest(b"[", b"]"),
    "nested_objects": _nest(b'{"a":', b"}"),
    "entities": _write_entities,
    # other formats and encodings
    "same": lambda body, size: body or b"{}",
    "xml": _write_xml,
    "multipart": _write_multipart,
    "form": lambda body, size: urlencode(_read_pairs(body), errors="replace").encode(),
    "utf16": lambda body, size: body.decode("utf-8", "replace").encode("utf-16"),
    "latin1_bytes": lambda body, size: _add_extra(body, b'"\xe9\xff\xfe"'),
    "twice": _repeat_keys,
}
"""Every form by its name."""


HEADER_SIZE_LIMIT = 100_000
HEADER_COUNT_LIMIT = 2_000
_WITH_BODY = frozenset(("POST", "PUT", "PATCH"))
_CHUNKS = (1, 3, 2, 17, 5, 1_000, 16_384)
"""The sizes of chunks, used in turn."""


class WireRequest(Struct, frozen=True):
    """A request as bytes: its head, and its body."""

    method: str
    head: bytes
    rest: bytes


def build_wire_request(
    change: RequestChange, url: HttpUrl, lines: tuple[bytes, ...], request: HttpRequest, cookie: str, parameter: str
) -> WireRequest:
    """Return the changed request; `lines` are the agent's headers, `parameter` is the field of its prompt."""
    method = request.method
    if change.method:
        method = change.method if change.method != method else "PATCH"
    body = None if change.body == "none" else request.body
    if change.body and change.body != "none":
        body = FORMS[change.body](body or b"", max(0, change.size))
    framing, rest = _frame(change, method, body)
    target = _change_target(change, url, request.target, parameter)
    first = f"{method} {target} HTTP/{change.version}".encode()
    cookies = [b"Cookie: " + cookie.encode()] if cookie else []
    head = [first, *_change_headers(change, lines), *cookies, *framing, b"", b""]
    end = change.line_end.encode()
    return WireRequest(method, _encode(change.before) + end.join(head), rest + _encode(change.after))


def _change_target(change: RequestChange, url: HttpUrl, target: str, parameter: str) -> str:
    if change.query:
        added = "&".join(piece.replace("{parameter}", parameter) for piece in change.query)
        target += ("&" if "?" in target else "?") + added
    return f"{url.endpoint.scheme}://{url.endpoint.authority}{target}" if change.absolute else target


def _change_headers(change: RequestChange, lines: tuple[bytes, ...]) -> Iterator[bytes]:
    """Yield the agent's headers with those of the change, and a connection that is not kept open."""
    replaced = {name.lower() for name, _ in change.headers}
    omitted = {*replaced, *change.without, "connection"}
    for line in lines:
        if line.partition(b":")[0].decode("latin-1").lower() not in omitted:
            yield line
    if "connection" not in replaced:
        yield b"Connection: close"
    for name, value in (*change.headers, *change.added):
        yield _encode(f"{name}: {value}")
    for n in range(min(change.header_count, HEADER_COUNT_LIMIT)):
        yield b"X-Holdfast-%d: %d" % (n, n)
    if change.header_size:
        yield b"X-Holdfast-Long: " + b"a" * min(change.header_size, HEADER_SIZE_LIMIT)


def _frame(change: RequestChange, method: str, body: bytes | None) -> tuple[list[bytes], bytes]:
    """Return the headers that give the body's length, and the body as sent."""
    if body is None and method not in _WITH_BODY and change.framing == "length":
        return [], b""
    data = body or b""
    if change.framing in ("chunked", "both"):
        chunks = (
            b"".join(_split_chunks(data)) + b"0\r\n" + (_encode(change.trailer) + b"\r\n" if change.trailer else b"")
        )
        rest = chunks + b"\r\n"
        # Both: whichever header a server uses, it reads everything that is sent and takes no byte for another request.
        both = [b"Content-Length: %d" % len(rest)] if change.framing == "both" else []
        return [*both, b"Transfer-Encoding: chunked"], rest
    length_line = b"Content-Length: %s%d" % (b"000" if change.framing == "zeros" else b"", len(data))
    return [length_line] * (2 if change.framing == "twice" else 1), data


def _split_chunks(data: bytes) -> Iterator[bytes]:
    """Yield the data in chunks of odd sizes; every second one has an extension and leading zeros."""
    at = n = 0
    while at < len(data):
        piece = data[at : at + _CHUNKS[n % len(_CHUNKS)]]
        size = b"%x" % len(piece) if n % 2 == 0 else b'00%X;holdfast="odd"' % len(piece)
        yield b"%b\r\n%b\r\n" % (size, piece)
        at, n = at + len(piece), n + 1


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
