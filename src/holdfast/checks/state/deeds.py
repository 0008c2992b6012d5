"""Selects events of the audit log and tool calls by filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from holdfast.checks.state.recorded import SHOWN
from holdfast.checks.trace.call_content import has_arguments, reports_error
from holdfast.checks.trace.calls import find_calls, get_call_name, is_carried_out, is_match
from holdfast.checks.values import is_equal, to_text
from holdfast.checks.wording import shorten, suggest_choice
from holdfast.model.trace import TraceEvent
from holdfast.model.world import AuditEvent

Deed = dict[str, Any]
"""`type`, and filters by name: text is a case-insensitive glob; any other value must be equal."""

FILTERS: Mapping[str, tuple[str, ...]] = {
    "command": ("command", "cwd", "exit_code"),
    "db_write": ("service", "table", "op", "rows"),
    "file_write": ("path", "op", "bytes"),
    "http_call": ("method", "url", "host", "path", "status", "request_body", "response_body"),
    "tool_call": ("tool", "arguments"),
}


class Deeds(Struct, frozen=True, omit_defaults=True):
    """The number of times that an action happened and is in effect, with descriptions of the first ones."""

    times: int = 0
    shown: tuple[str, ...] = ()
    unseen: str = ""
    """Why there may be more; empty if there are not."""


def is_deed(event: AuditEvent, deed: Deed) -> bool:
    """Return whether the event is such an action. A request counts if it succeeded, unless `status` says otherwise.

    A request that never reached its service does not count, whatever reply the agent got.
    """
    if event.type != deed["type"] or event.details.get("received") is False:
        return False
    details = _get_details(event)
    if event.type == "http_call" and "status" not in deed and not _is_success(details["status"]):
        return False
    return all(_is_match(details.get(name), wanted) for name, wanted in deed.items() if name != "type")


def find_calls_done(trace: Iterable[TraceEvent], deed: Deed) -> Deeds:
    """Return the tool calls that are such an action: the tool did it, whatever reply the agent got."""
    named_so = [event for event in find_calls(trace) if is_match(event, str(deed.get("tool", "*")))]
    fitting = [(event, has_arguments(event.input, deed.get("arguments"))) for event in named_so]
    # Three groups: calls that certainly count, calls that may count, and calls whose arguments were cut.
    well = [event for event, has_match in fitting if has_match and _is_done(event)]
    doubt = next((event for event, has_match in fitting if has_match is not False and _is_done(event) is None), None)
    cut = next((event for event, has_match in fitting if has_match is None), None)
    why = f"it is unknown whether {get_call_name(doubt)} carried out the call" if doubt else ""
    why = why or (f"the arguments of a call of {get_call_name(cut)} were too long to be stored" if cut else "")
    listed = tuple(shorten(f"{get_call_name(event)} {event.input}", 200) for event in well[:SHOWN])
    return Deeds(len(well), listed, why)


def _is_done(event: TraceEvent) -> bool | None:
    """Return whether the call succeeded.

    A call that failed without a fault counts as failed, even if the tool may have acted first. None: unknown.
    """
    if event.phase != "done":
        return None
    return False if not event.fault and (event.failed or reports_error(event)) else is_carried_out(event)


def find_deed_errors(deed: Deed) -> Iterator[tuple[str, str]]:
    """Yield the invalid filter of an action as written in the spec, and why it is invalid."""
    kind = str(deed.get("type"))
    if kind not in FILTERS:
        yield "type", f"expected one of {', '.join(FILTERS)}, found {shorten(kind)}"
        return
    if not isinstance(deed.get("arguments", {}), dict):
        yield "arguments", "expected a map of arguments"
    for name in deed:
        if name != "type" and name not in FILTERS[kind]:
            yield name, f"is not a filter of {kind}: {suggest_choice(name, FILTERS[kind])}"


def describe_event(event: AuditEvent) -> str:
    """Describe an event for the report."""
    details = _get_details(event)
    order = {
        "command": ("command",),
        "db_write": ("op", "service", "table", "rows"),
        "file_write": ("op", "path"),
        "http_call": ("method", "url", "status"),
    }[event.type]
    return shorten(" ".join(to_text(details[name]) for name in order if details.get(name) is not None), 200)


def _get_details(event: AuditEvent) -> dict[str, Any]:
    """Return the event's details, and values derived from them."""
    details = dict(event.details)
    if event.type == "command":
        details["command"] = " ".join(str(word) for word in details.get("argv", ()))
    elif event.type == "http_call":
        details["path"] = _get_url_path(str(details.get("url", "")))
        details["status"] = details.get("answered", details.get("status"))
    return details


def _get_url_path(url: str) -> str:
    try:
        return urlsplit(url).path or "/"
    except ValueError:  # an agent may request something that is not a URL
        return ""


def _is_success(status: Any) -> bool:
    return isinstance(status, int) and 200 <= status < 400


def _is_match(value: Any, wanted: Any) -> bool:
    if value is None:
        return wanted is None
    if isinstance(wanted, str):
        return fnmatchcase(to_text(value).casefold(), wanted.casefold())
    return is_equal(value, wanted)
