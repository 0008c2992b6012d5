"""The audit log of one trial: what the agent did, in order, stored out of the agent's reach."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from holdfast.model.codec import encode
from holdfast.model.trace import EVENTS_KEPT as CALLS_KEPT
from holdfast.model.trace import TraceEvent
from holdfast.model.world import AUDIT_KEPT, AuditEvent, AuditSettings, AuditType, FileTexts, WrittenCanaries
from holdfast.protocols.sandbox import CommandEnd, FileChange
from holdfast.protocols.service import Database, Mock, Recorded

BODY_KEPT = 64_000
"""Maximum number of characters of a body that an event stores."""

NOTHING_WRITTEN = WrittenCanaries()
ReadDatabase = Callable[[Database], Awaitable[WrittenCanaries]]
ReadTexts = Callable[[FileChange], FileTexts | None]
"""Reads the text of a changed file, up to a limit."""


class AuditLog:
    """Collects events as they happen and writes them as JSONL after the agent has ended."""

    def __init__(self, path: Path, wanted: AuditSettings) -> None:
        self.path = path
        self._wanted = wanted
        self._events: list[AuditEvent] = []
        self._counts: Counter[AuditType] = Counter()
        self.cut: set[AuditType] = set()
        """The event types that were cut because there were too many events."""

    def record_command(self, argv: Sequence[str], cwd: str, ts: float) -> Callable[[CommandEnd], None]:
        """Record a command that started inside the sandbox; the returned callback records its end."""
        details: dict[str, Any] = {"argv": list(argv), "cwd": cwd, "exit_code": None, "duration_ms": None}
        if self._wanted.commands:
            self._add(ts, "command", details)

        def record_end(end: CommandEnd) -> None:
            took_ms = None if end.duration_ms is None else round(end.duration_ms, 3)
            details.update(exit_code=end.exit_code, duration_ms=took_ms)

        return record_end

    def record_files(
        self,
        changes: Iterable[FileChange],
        texts: ReadTexts = lambda change: None,
        written: Callable[[FileChange], WrittenCanaries] | None = None,
    ) -> None:
        """Record how the workspace differs from the snapshot; `written` reads the text that an attack left there."""
        now = time.time()
        for change in changes if self._wanted.file_writes else ():
            details = {"path": change.path, "op": change.op, "bytes": change.bytes}
            canaries = written(change) if written is not None and not self._is_full("file_write") else NOTHING_WRITTEN
            self._add(now, "file_write", details, texts(change), canaries)

    async def record_database(self, service: Database, written: ReadDatabase | None = None) -> None:
        """Record the writes to a database; `written` reads the text that an attack left there."""
        events = list(await service.writes()) if self._wanted.db_writes else []
        canaries = await written(service) if written is not None and events else NOTHING_WRITTEN
        for event in events:
            self._add(event.ts, "db_write", event.details, canaries=canaries)

    def record_calls(self, trace: Sequence[TraceEvent], began: float, mocks: Mapping[str, Mock]) -> None:
        """Record the HTTP calls of the trace, with complete bodies from the records of mocks (by host)."""
        if not self._wanted.http_calls:
            return
        if len(trace) >= CALLS_KEPT:
            self.cut.add("http_call")
        requests = {id(mock): list(mock.requests) for mock in mocks.values()}
        recorded = {host: requests[id(mock)] for host, mock in mocks.items()}
        for event in trace:
            if event.event_type == "http_call" and event.plane == "http":
                self._add(began + event.ts, "http_call", _describe_call(event, recorded))

    def close(self) -> tuple[AuditEvent, ...]:
        """Number every event in order and write the log."""
        ordered = sorted(self._events, key=lambda event: event.ts)
        events = tuple(replace(event, seq=n) for n, event in enumerate(ordered, 1))
        plain = (AuditEvent(event.ts, event.seq, event.type, event.details) for event in events)
        self.path.write_bytes(b"".join(encode(event) + b"\n" for event in plain))  # scripts rely on four keys
        return events

    def _is_full(self, type: AuditType) -> bool:
        return self._counts[type] >= AUDIT_KEPT

    def _add(
        self,
        ts: float,
        type: AuditType,
        details: dict[str, Any],
        texts: FileTexts | None = None,
        canaries: WrittenCanaries = NOTHING_WRITTEN,
    ) -> None:
        if self._is_full(type):
            self.cut.add(type)
        else:
            self._counts[type] += 1
            self._events.append(AuditEvent(ts, 0, type, details, texts, canaries.canaries, canaries.unread))


def _describe_call(event: TraceEvent, recorded: Mapping[str, list[Recorded]]) -> dict[str, Any]:
    method, _, url = event.tool.partition(" ")
    parts = urlsplit(url)
    details = {
        "method": method,
        "url": url,
        "host": parts.hostname or "",
        "status": event.status,
        "request_body": event.input,
        "response_body": event.output,
    }
    if event.times > 1:
        details["times"] = event.times
    if event.unsent:  # a fault answered it, or held it back
        return details | {"received": False}
    whole = _pop_request(recorded.get(parts.hostname or "", []), method, parts.path or "/")
    if whole is not None:
        details |= {"request_body": whole.body[:BODY_KEPT], "response_body": whole.response[:BODY_KEPT]}
        details |= {"received": True, "answered": whole.status}
    return details


def _pop_request(requests: list[Recorded], method: str, path: str) -> Recorded | None:
    """Remove and return the first request of a mock's record that matches this call."""
    for n, request in enumerate(requests):
        if (request.method, request.path) == (method, path):
            return requests.pop(n)
    return None


_PROGRAMS = frozenset(("bwrap", "unshare", "firejail", "nsjail"))
_REFUSED = re.compile(
    r"bwrap: (?:Creating new namespace failed|No permissions to creat\w+ (?:a )?new namespace|setting up uid map)"
    r"|unshare(?: failed)?: (?:No space left on device|Operation not permitted)"
)
_NEXT = "agent.nested_sandbox: true lets it, or turn its own sandbox off: it runs inside Holdfast's"


def explain_refused_nesting(events: Iterable[AuditEvent], printed: str) -> str:
    """Return a note about an agent whose own sandbox failed to start; empty for any other agent."""
    for event in events:
        argv = event.details.get("argv") if event.type == "command" else None
        if argv and os.path.basename(argv[0]) in _PROGRAMS and event.details.get("exit_code") not in (0, None):
            code = event.details["exit_code"]
            return f"{os.path.basename(argv[0])} ended with {code}: no sandbox can be made inside this one; {_NEXT}"
    if _REFUSED.search(printed):
        return f"the agent could make no sandbox of its own inside this one; {_NEXT}"
    return ""
