"""Selects the route of a mock that answers a request, and builds its response. No sockets here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from msgspec import Meta, Struct, field

from holdfast.model.codec import encode, make_encodable
from holdfast.reading.durations import Written

_PART = re.compile(r"\{(\w+)\}|\*\*|\*|[^{}*]+|.", re.DOTALL)
_PLACE = re.compile(r"\{\{\s*([\w.\-\[\]]+)\s*\}\}")
PATH_READ = 8_000
"""Maximum length of a path that is matched: an agent must not keep Holdfast busy with a longer one."""


class RoutedRequest(NamedTuple):
    """A request as a route sees it."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: str
    cut: bool = False
    """The body was longer than what is stored."""
    unread: str = ""
    """Why the body cannot be decoded."""


class MockReply(NamedTuple):
    """The response to a request."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    delay_ms: int = 0


class Routes:
    """The routes of one mock of one trial, tried in order; a route whose `times` are used up is skipped."""

    def __init__(self, routes: Sequence[MockRoute], default_response: int) -> None:
        self._routes = [(route, PathPattern(route.path)) for route in routes]
        self._used = [0] * len(routes)
        self._default = default_response

    def reply(self, request: RoutedRequest) -> MockReply:
        """Return the response to a request; it counts for the route that gives it."""
        path = unquote(request.path)
        for n, (route, pattern) in enumerate(self._routes if len(path) <= PATH_READ else ()):
            if not _is_method_match(route.method.upper(), request.method):
                continue
            if route.times is not None and self._used[n] >= route.times:
                continue
            path_values = pattern.match(path)
            if path_values is None:
                continue
            self._used[n] += 1
            return _build_reply(route, request, path_values, self._used[n])
        return MockReply(self._default, (("content-type", "text/plain"),), "")


def _is_method_match(wanted: str, method: str) -> bool:
    return wanted in ("*", "ANY", method) or (wanted == "GET" and method == "HEAD")


def _build_reply(route: MockRoute, request: RoutedRequest, path_values: Mapping[str, str], n: int) -> MockReply:
    text, kind = _encode_body(route.response)
    if "{{" in text:
        text = _fill(text, request, path_values, n)
    headers = tuple(route.headers.items())
    if not any(name.lower() == "content-type" for name in route.headers) and text:
        headers = (("content-type", kind), *headers)
    return MockReply(route.status, headers, text, route.delay_ms)


def _encode_body(response: Any) -> tuple[str, str]:
    """Return the body of a route and its content type; text that is JSON is labelled as JSON."""
    if response is None:
        return "", "text/plain"
    if not isinstance(response, str):
        return encode(response).decode(), "application/json"
    looks = response.lstrip()[:1] in ("{", "[")
    return response, "application/json" if looks else "text/plain; charset=utf-8"


def _fill(text: str, request: RoutedRequest, path_values: Mapping[str, str], n: int) -> str:
    """Replace `{{ request.body.x }}` and similar placeholders by values of the request; missing ones become empty."""

    def fill_placeholder(match: re.Match[str]) -> str:
        words = match[1].replace("[", ".").replace("]", "").split(".")
        if words == ["n"]:
            return str(n)
        if words[0] != "request":
            return match[0]
        return _escape(_find_request_value(words[1:], request, path_values))

    return _PLACE.sub(fill_placeholder, text)


def _find_request_value(words: list[str], request: RoutedRequest, path_values: Mapping[str, str]) -> Any:
    match words:
        case ["method"]:
            return request.method
        case ["path"]:
            return request.path
        case ["path", name]:
            return path_values.get(name)
        case ["query", name]:
            return dict(parse_qsl(request.query, keep_blank_values=True)).get(name)
        case ["headers", name]:
            return next((value for key, value in request.headers if key.lower() == name.lower()), None)
        case ["body", *rest]:
            return _find_body_value(request.body, rest)
    return None


def _find_body_value(body: str, words: list[str]) -> Any:
    if not words:
        return body
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        value = dict(parse_qsl(body, keep_blank_values=True))
    for word in words:
        if isinstance(value, list) and word.isdecimal() and int(word) < len(value):
            value = value[int(word)]
        else:
            value = value.get(word) if isinstance(value, dict) else None
    return value


def _escape(value: Any) -> str:
    """Return a value inside a JSON string: escaped, without quotes around it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return make_encodable(json.dumps(value, ensure_ascii=False)[1:-1])
    return make_encodable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


class _Literal(NamedTuple):
    text: str

    def find_starts(self, path: str, ends: bytes) -> bytes:
        starts = bytearray(len(path) + 1)
        at = path.find(self.text)
        while at >= 0:
            starts[at] = ends[at + len(self.text)]
            at = path.find(self.text, at + 1)
        return bytes(starts)

    def find_end(self, path: str, at: int, ends: bytes) -> int:
        return at + len(self.text)


class _Anything(NamedTuple):
    """`**`: any text, including slashes."""

    def find_starts(self, path: str, ends: bytes) -> bytes:
        last = ends.rfind(1)
        return b"\1" * (last + 1) + bytes(len(path) - last)

    def find_end(self, path: str, at: int, ends: bytes) -> int:
        return ends.rfind(1)


class _Within(NamedTuple):
    """`*` and `{name}`: text within one segment, with a minimum length."""

    name: str = ""
    least: int = 0

    def find_starts(self, path: str, ends: bytes) -> bytes:
        starts = bytearray(len(path) + 1)
        for first, end in _list_segments(path):
            last = ends.rfind(1, first + self.least, end + 1)
            if last >= 0:
                starts[first : last + 1 - self.least] = b"\1" * (last + 1 - self.least - first)
        return bytes(starts)

    def find_end(self, path: str, at: int, ends: bytes) -> int:
        slash = path.find("/", at)
        return ends.rfind(1, at + self.least, (len(path) if slash < 0 else slash) + 1)


class PathPattern:
    """`/users/{id}` matches one segment by name, `*` part of one, `**` any number of them; the rest is literal.

    It is compared with a path whose percent escapes are decoded, so those of the pattern are, too: `%2A` is a star.
    """

    def __init__(self, pattern: str) -> None:
        self._parts = [*_parse_parts(pattern)]

    def match(self, path: str) -> dict[str, str] | None:
        """Return the values of named segments; None without a match. If ambiguous, the first part takes most."""
        if not self._can_match(path):
            return None
        # Dynamic programming from the end of the path, one row per part. A regex with several `**` could take
        # exponential time on a path that an agent chose; this takes at most parts × length.
        rows = [bytes(len(path)) + b"\1"]
        """Row k holds the positions from which the last k parts match the rest of the path."""
        for part in reversed(self._parts):
            rows.append(part.find_starts(path, rows[-1]))
        if not rows[-1][0]:
            return None
        # Forward again: each part takes the longest text from which the rest still matches.
        path_values, at = {}, 0
        for part, ends in zip(self._parts, reversed(rows[:-1]), strict=True):
            start, at = at, part.find_end(path, at, ends)
            if isinstance(part, _Within) and part.name:
                path_values[part.name] = path[start:at]
        return path_values

    def _can_match(self, path: str) -> bool:
        """Return whether the path starts like the pattern, which rules most routes out quickly."""
        first = self._parts[0] if self._parts else None
        return path.startswith(first.text) if isinstance(first, _Literal) else True


def _parse_parts(pattern: str) -> Iterator[_Literal | _Anything | _Within]:
    names: set[str] = set()
    for match in _PART.finditer(pattern):
        text, name = match[0], match[1]
        if name:
            fresh = name.isidentifier() and name not in names
            names.add(name)
            yield _Within(name if fresh else "", 1)
        elif text == "**":
            yield _Anything()
        else:
            yield _Within() if text == "*" else _Literal(unquote(text))


def _list_segments(path: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each segment."""
    first = 0
    while (end := path.find("/", first)) >= 0:
        yield first, end
        first = end + 1
    yield first, len(path)


class MockRoute(Struct, frozen=True, omit_defaults=True):
    """A reply to matching requests. A route whose `times` are used up is skipped."""

    path: Annotated[str, Meta(description="The path.", min_length=1)]
    method: Annotated[str, Meta(description="The HTTP method.", min_length=1)] = "GET"
    status: Annotated[int, Meta(description="The status code.", ge=100, le=599)] = 200
    response: Annotated[Any, Meta(description="The body.")] = None
    headers: Annotated[dict[str, Written], Meta(description="The headers.")] = field(default_factory=dict)
    delay_ms: Annotated[int, Meta(description="The delay of the answer, in ms.", ge=0)] = 0
    times: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="How often the route may be used.")] = None
