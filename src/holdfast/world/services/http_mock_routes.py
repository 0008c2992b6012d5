"""Which route of a mock answers a request, and what it says. No sockets here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from holdfast.model.codec import encodable, encode
from holdfast.world.services.http_mock_path import PathPattern
from holdfast.world.services.http_mock_route import MockRoute

_PLACE = re.compile(r"\{\{\s*([\w.\-\[\]]+)\s*\}\}")
PATH_READ = 8_000
"""A longer path fits no route: an agent must not keep us busy with matching it."""


class MockRequest(NamedTuple):
    """A request as a route sees it."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: str
    cut: bool = False
    """The body was longer."""
    unread: str = ""
    """Why the body cannot be understood."""


class Replied(NamedTuple):
    """What is answered."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    delay_ms: int = 0


class Routes:
    """The routes of one mock of one trial: tried in order; one whose `times` are used up is passed over."""

    def __init__(self, routes: Sequence[MockRoute], default_response: int) -> None:
        self._routes = [(route, PathPattern(route.path)) for route in routes]
        self._used = [0] * len(routes)
        self._default = default_response

    def reply(self, asked: MockRequest) -> Replied:
        """The answer to a request, which counts for the route that gives it."""
        path = unquote(asked.path)
        for n, (route, pattern) in enumerate(self._routes if len(path) <= PATH_READ else ()):
            if not _method_fits(route.method.upper(), asked.method):
                continue
            if route.times is not None and self._used[n] >= route.times:
                continue
            named = pattern.match(path)
            if named is None:
                continue
            self._used[n] += 1
            return _reply(route, asked, named, self._used[n])
        return Replied(self._default, (("content-type", "text/plain"),), "")


def _method_fits(wanted: str, method: str) -> bool:
    return wanted in ("*", "ANY", method) or (wanted == "GET" and method == "HEAD")


def _reply(route: MockRoute, asked: MockRequest, named: Mapping[str, str], n: int) -> Replied:
    text, kind = _body(route.response)
    if "{{" in text:
        text = _filled(text, asked, named, n)
    headers = tuple(route.headers.items())
    if not any(name.lower() == "content-type" for name in route.headers) and text:
        headers = (("content-type", kind), *headers)
    return Replied(route.status, headers, text, route.delay_ms)


def _body(response: Any) -> tuple[str, str]:
    """The body of a route, and what it is: text that is JSON is said to be."""
    if response is None:
        return "", "text/plain"
    if not isinstance(response, str):
        return encode(response).decode(), "application/json"
    looks = response.lstrip()[:1] in ("{", "[")
    return response, "application/json" if looks else "text/plain; charset=utf-8"


def _filled(text: str, asked: MockRequest, named: Mapping[str, str], n: int) -> str:
    """`{{ request.body.x }}` and its like replaced by what the request has; what it has not is empty."""

    def value(found: re.Match[str]) -> str:
        words = found[1].replace("[", ".").replace("]", "").split(".")
        if words == ["n"]:
            return str(n)
        if words[0] != "request":
            return found[0]
        return _shown(_of_request(words[1:], asked, named))

    return _PLACE.sub(value, text)


def _of_request(words: list[str], asked: MockRequest, named: Mapping[str, str]) -> Any:
    match words:
        case ["method"]:
            return asked.method
        case ["path"]:
            return asked.path
        case ["path", name]:
            return named.get(name)
        case ["query", name]:
            return dict(parse_qsl(asked.query, keep_blank_values=True)).get(name)
        case ["headers", name]:
            return next((value for key, value in asked.headers if key.lower() == name.lower()), None)
        case ["body", *rest]:
            return _inside(asked.body, rest)
    return None


def _inside(body: str, words: list[str]) -> Any:
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


def _shown(value: Any) -> str:
    """A value inside of a body: quoted as JSON would, without the quotes around it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return encodable(json.dumps(value, ensure_ascii=False)[1:-1])
    return encodable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
