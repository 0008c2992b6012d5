"""The requests that a mock recorded: filters on them and values of their fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from holdfast.checks.json_parts import Pairs, find_path_error, parse, select_parts
from holdfast.checks.state.recorded import KEPT
from holdfast.checks.values import is_equal
from holdfast.errors import HarnessError
from holdfast.protocols.service import Mock
from holdfast.protocols.world import World

FIELD = re.compile(
    r"request_count|(last_request|requests\[(\d{1,9})\])"
    r"(?:\.(method|path|query|status|headers|headers\.(?:[^.\s]+)|body|body(?:\.|\[).+))?"
)
MISSING = object()
"""The value is missing; a JSON null is None."""


class StoredRequest(Struct, frozen=True, omit_defaults=True):
    """One recorded request, as stored in the evidence."""

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    status: int = 0
    cut: bool = False
    """The mock stored only the beginning of the body."""
    unread: str = ""
    """Why the body cannot be decoded."""

    @property
    def hidden(self) -> str:
        """Why the body is unknown; empty if it is known."""
        if self.unread:
            return f"the body cannot be read: {self.unread}"
        return "the body was truncated because it is too long to store" if self.cut else ""


class MockRequests(Struct, frozen=True, omit_defaults=True):
    """The first requests that a mock received, and the number of further ones."""

    requests: tuple[StoredRequest, ...] = ()
    more: int = 0


def get_mock(world: World, service: str) -> Mock:
    """Return the service of that name; raise HarnessError if it is not a mock."""
    candidate = world.services.get(service)
    if not isinstance(candidate, Mock):
        raise HarnessError(f"{service} is not an http_mock service", code="check-service-wrong")
    return candidate


def split_field(field: str) -> tuple[int, str]:
    """Return the index of the request that a field names, -1 for the last one, and the named part of it."""
    match = FIELD.fullmatch(field)
    return (int(match[2]) if match and match[2] else -1), (match[3] or "" if match else "")


def read_requests(mock: Mock) -> MockRequests:
    """Return the requests of a mock in order, as many as fit into the evidence."""
    requests: list[StoredRequest] = []
    size = 0
    for one in mock.requests:
        size += len(one.path) + len(one.query) + len(one.body) + sum(len(n) + len(v) for n, v in one.headers)
        if size > KEPT:
            break
        body = (one.body, one.status, one.cut, one.unread)
        requests.append(StoredRequest(one.method, one.path, one.query, one.headers, *body))
    return MockRequests(tuple(requests), len(mock.requests) - len(requests) + mock.dropped)


def filter_requests(requests: Sequence[StoredRequest], filters: Mapping[str, Any]) -> list[StoredRequest]:
    """Return the requests that match every filter."""
    return [one for one in requests if all(_is_match(one, name, wanted) for name, wanted in filters.items())]


def find_uncertain_requests(requests: Sequence[StoredRequest], filters: Mapping[str, Any]) -> list[StoredRequest]:
    """Return the requests that match every filter except those on a body that is unknown."""
    requests_left = []
    for one in requests if filters else ():
        headers = join_headers(one)
        others = {k: wanted for k, wanted in filters.items() if k in ("method", "path") or k.lower() in headers}
        # It matches everything that can be checked, and a filter on its unknown body may match as well.
        if one.hidden and len(others) < len(filters) and filter_requests([one], others):
            requests_left.append(one)
    return requests_left


def _is_match(request: StoredRequest, name: str, wanted: Any) -> bool:
    if name == "method":
        return request.method.upper() == str(wanted).upper()
    if name == "path":
        return fnmatchcase(request.path, str(wanted)) or fnmatchcase(unquote(request.path), str(wanted))
    headers = join_headers(request)
    if name.lower() in headers:
        return headers[name.lower()] == (str(wanted).lower() if isinstance(wanted, bool) else str(wanted))
    members = [] if request.hidden else _list_members(request.body)
    return any(key == name and is_equal(value, wanted) for key, value in members)


def _list_members(body: str) -> Pairs:
    """Return the members of a JSON object. Of two with one key, either may be the one that a reader takes."""
    objects: list[Pairs] = []

    def keep(pairs: Pairs) -> dict[str, Any]:
        objects.append(pairs)  # the outermost object ends last
        return dict(pairs)

    try:
        return objects[-1] if isinstance(parse(body, build=keep), dict) else []
    except ValueError:
        return []


def join_headers(request: StoredRequest) -> dict[str, str]:
    """Return the headers by lower-case name; repeated headers are joined by commas."""
    headers: dict[str, str] = {}
    for name, value in request.headers:
        lower = name.lower()
        headers[lower] = f"{headers[lower]}, {value}" if lower in headers else value
    return headers


def parse_body(body: str) -> Any:
    """Return the body as JSON; MISSING if it is not JSON, or if readers may differ about a duplicate key."""
    try:
        return parse(body, unique=True)
    except ValueError:
        return MISSING


def get_request_value(request: StoredRequest, part: str) -> Any:
    """Return a part of a request, such as `body` or `headers.x-key`; the complete request if `part` is empty."""
    name, dot, rest = part.partition(".")
    if part.startswith("body") and part != "body":
        return _select_value(parse_body(request.body), _to_body_path(part))
    if name == "headers":
        return join_headers(request).get(rest.lower(), MISSING) if dot else join_headers(request)
    whole = {
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "headers": join_headers(request),
        "body": request.body,
        "status": request.status,
    }
    return whole[name] if name else whole


def _to_body_path(part: str) -> str:
    """Convert `body.items[0].id` to a path into the body; dots alone need no JSONPath."""
    rest = part.removeprefix("body")
    path = rest.removeprefix(".")
    if path.startswith("$") or "[" not in path:
        return path
    return f"${rest}"


def _select_value(value: Any, path: str) -> Any:
    """Return a single match as a value, several as a list, none as MISSING."""
    values = [] if value is MISSING else select_parts(value, path)
    return MISSING if not values else values[0] if len(values) == 1 else values


def find_field_error(field: str) -> str | None:
    """Return what is wrong with the field's path into a body; None if nothing is."""
    match = FIELD.fullmatch(field)
    part = (match[3] or "") if match else ""
    return find_path_error(_to_body_path(part)) if part.startswith("body") and part != "body" else None
