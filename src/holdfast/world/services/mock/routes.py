"""Selects the route of a mock that answers a request, and builds its response. No sockets here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from msgspec import Meta, Struct, field

from holdfast.model.codec import encode, make_encodable
from holdfast.reading.durations import Written

_PART = re.compile(r"\{(\w+)\}|\*\*|\*|[^{}*]+|.", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{\s*([\w.\-\[\]]+)\s*\}\}")
_WILDCARDS = {"**": ".*", "*": "[^/]*"}
SEARCH_S = 0.2
"""Processor time for comparing a path with one pattern: a usual one takes microseconds."""
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

    return _PLACEHOLDER.sub(fill_placeholder, text)


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


class PathPattern:
    """`/users/{id}` matches one segment by name, `*` part of one, `**` any number of them; the rest is literal.

    It is compared with a path whose percent escapes are decoded, so those of the pattern are, too: `%2A` is a star.
    """

    def __init__(self, pattern: str) -> None:
        import regex  # takes 10 ms, which only a run with a mock needs

        names: set[str] = set()

        def translate(part: re.Match[str]) -> str:
            text, name = part[0], part[1]
            if name and name.isidentifier() and name not in names:
                names.add(name)
                return f"(?P<{name}>[^/]+)"
            return "[^/]+" if name else _WILDCARDS.get(text) or re.escape(unquote(text))

        self._regex = regex.compile(_PART.sub(translate, pattern), regex.DOTALL)

    def match(self, path: str) -> dict[str, str] | None:
        """Return the values of named segments; None without a match. If ambiguous, the first part takes most."""
        # With several `**` a search may take forever on a path that an agent chose, so it has a time limit.
        try:
            match = self._regex.fullmatch(path, timeout=SEARCH_S)
        except TimeoutError:
            return None
        return None if match is None else match.groupdict()


class MockRoute(Struct, frozen=True, omit_defaults=True):
    """A reply to matching requests. A route whose `times` are used up is skipped."""

    path: Annotated[str, Meta(description="The path.", min_length=1)]
    method: Annotated[str, Meta(description="The HTTP method.", min_length=1)] = "GET"
    status: Annotated[int, Meta(description="The status code.", ge=100, le=599)] = 200
    response: Annotated[Any, Meta(description="The body.")] = None
    headers: Annotated[dict[str, Written], Meta(description="The headers.")] = field(default_factory=dict)
    delay_ms: Annotated[int, Meta(description="The delay of the answer, in ms.", ge=0)] = 0
    times: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="How often the route may be used.")] = None
