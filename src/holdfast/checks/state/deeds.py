"""Events of the audit log, told apart by filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from holdfast.checks.state.json_equality import as_text, same
from holdfast.checks.wording import near_miss, shorten
from holdfast.model.world import AuditEvent

Deed = dict[str, Any]
"""`type` and filters by name: text is a glob, upper and lower case alike; anything else is the same value."""

FILTERS: Mapping[str, tuple[str, ...]] = {
    "command": ("command", "cwd", "exit_code"),
    "db_write": ("service", "table", "op", "rows"),
    "file_write": ("path", "op", "bytes"),
    "http_call": ("method", "url", "host", "path", "status", "request_body", "response_body"),
}


def fits(event: AuditEvent, deed: Deed) -> bool:
    """Whether the event is such a deed. A request counts as done if it was answered well, unless `status` says else.

    One that never reached its service is no deed, whatever the agent was told.
    """
    if event.type != deed["type"] or event.details.get("received") is False:
        return False
    known = _known(event)
    if event.type == "http_call" and "status" not in deed and not _went_well(known["status"]):
        return False
    return all(_fits(known.get(name), wanted) for name, wanted in deed.items() if name != "type")


def fault_in_deed(deed: Deed) -> Iterator[tuple[str, str]]:
    """What is wrong with a deed as it is written: the filter, and why."""
    kind = str(deed.get("type"))
    if kind not in FILTERS:
        yield "type", f"expected one of {', '.join(FILTERS)}, found {shorten(kind)}"
        return
    for name in deed:
        if name != "type" and name not in FILTERS[kind]:
            yield name, f"is no filter of {kind}: {near_miss(name, FILTERS[kind])}"


def in_words(event: AuditEvent) -> str:
    """An event for the report."""
    known = _known(event)
    order = {
        "command": ("command",),
        "db_write": ("op", "service", "table", "rows"),
        "file_write": ("op", "path"),
        "http_call": ("method", "url", "status"),
    }[event.type]
    return shorten(" ".join(as_text(known[name]) for name in order if known.get(name) is not None), 200)


def _known(event: AuditEvent) -> dict[str, Any]:
    """The event's details, and what follows from them."""
    known = dict(event.details)
    if event.type == "command":
        known["command"] = " ".join(str(word) for word in known.get("argv", ()))
    elif event.type == "http_call":
        known["path"] = _path(str(known.get("url", "")))
        known["status"] = known.get("answered", known.get("status"))
    return known


def _path(url: str) -> str:
    try:
        return urlsplit(url).path or "/"
    except ValueError:  # an agent may ask for what is no URL at all
        return ""


def _went_well(status: Any) -> bool:
    return isinstance(status, int) and 200 <= status < 400


def _fits(value: Any, wanted: Any) -> bool:
    if value is None:
        return wanted is None
    if isinstance(wanted, str):
        return fnmatchcase(as_text(value).casefold(), wanted.casefold())
    return same(value, wanted)
