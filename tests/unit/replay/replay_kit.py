"""Sessions and traces for the tests of replays, and a server that speaks LangSmith's API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from holdfast.model.session import RecordedSession
from holdfast.model.task import RecordedResponse
from holdfast.replay.foreign_trace import SessionsFound
from holdfast.replay.formats import import_file

PROJECT = "5a0b0f5e-94a8-4c25-8f8e-3a37f7f52a11"


def session(id: str = "one", *turns: str, **more: Any) -> RecordedSession:
    return RecordedSession(id, turns or ("What does it cost?",), **more)


def answered(tool: str, value: Any, status: int = 200, latency_ms: float = 0.0) -> RecordedResponse:
    return RecordedResponse(tool, json.dumps(value, separators=(",", ":")), status, latency_ms)


def told(responses: Sequence[RecordedResponse]) -> list[tuple[str, Any, int]]:
    """Recorded responses as tool, value, status."""
    return [(one.tool, json.loads(one.response), one.status) for one in responses]


def read_text(tmp_path: Path, text: str, name: str = "traces.json", format: Any = None) -> SessionsFound:
    """The sessions of a file with this text."""
    path = tmp_path / name
    path.write_text(text)
    return import_file(path, format)


def read_json(tmp_path: Path, document: Any, name: str = "traces.json", format: Any = None) -> SessionsFound:
    return read_text(tmp_path, json.dumps(document), name, format)


def uuid(n: int) -> str:
    return f"00000000-0000-4000-8000-{n:012d}"


def langsmith_run(
    n: int, kind: str = "chain", *, parent: int | None = None, trace: int | None = None, **more: Any
) -> Any:
    """A run as the API gives it; `n` numbers it, and its seconds."""
    trace = n if trace is None else trace
    at = f"20261110T1200{n % 60:02d}000000Z"
    above = "" if parent is None else f"20261110T1200{parent % 60:02d}000000Z{uuid(parent)}."
    return {
        "id": uuid(n),
        "name": f"run {n}",
        "run_type": kind,
        "start_time": f"2026-11-10T12:00:{n % 60:02d}.000000",
        "end_time": f"2026-11-10T12:00:{n % 60:02d}.250000",
        "inputs": {},
        "outputs": None,
        "error": None,
        "status": "error" if more.get("error") else "success",
        "parent_run_id": None if parent is None else uuid(parent),
        "trace_id": uuid(trace),
        "dotted_order": f"{above}{at}{uuid(n)}",
        "session_id": PROJECT,
        "extra": {},
        **more,
    }


class LangSmithServer:
    """Speaks as much of the API as the client asks for; `asked` has every request."""

    def __init__(self, runs: Sequence[Any], *, page: int = 2, key: str = "ls-secret-key") -> None:
        self.runs = list(runs)
        self.asked: list[tuple[str, Any]] = []
        self.key = key
        self.page = page
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self, None)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.answer(self, json.loads(body or b"null"))

            def log_message(self, *_: object) -> None:
                """Not the place for it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def environ(self) -> dict[str, str]:
        return {
            "LANGSMITH_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}",
            "LANGSMITH_API_KEY": self.key,
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: Any, body: Any) -> None:
        self.asked.append((request.path, body))
        status, value = self._answer(request, body)
        data = json.dumps(value).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def _answer(self, request: Any, body: Any) -> tuple[int, Any]:
        url = urlsplit(request.path)
        if url.path == "/info":
            return 200, {"version": "0.10.0", "instance_flags": {}}
        if request.headers.get("x-api-key") != self.key:
            return 401, {"detail": "Invalid token"}
        if url.path == "/sessions":
            named = parse_qs(url.query).get("name") == ["support"]
            project = {
                "id": PROJECT,
                "name": "support",
                "start_time": "2026-11-01T00:00:00",
                "tenant_id": uuid(999),
                "reference_dataset_id": None,
            }
            return 200, [project] if named else []
        if url.path.startswith("/runs/") and request.command == "GET":
            found = [run for run in self.runs if run["id"] == url.path.removeprefix("/runs/")]
            return (200, found[0]) if found else (404, {"detail": "Run not found"})
        if url.path == "/runs/query":
            return 200, self._query(body)
        return 404, {"detail": "Not Found"}

    def _query(self, body: Any) -> Any:
        found = [run for run in self.runs if self._fits(run, body)]
        start = int(body.get("cursor") or 0)
        following = str(start + self.page) if start + self.page < len(found) else None
        return {"runs": found[start : start + self.page], "cursors": {"next": following}}

    def _fits(self, run: Any, body: Any) -> bool:
        if "is_root" in body and body["is_root"] != (run["parent_run_id"] is None):
            return False
        if "trace" in body and run["trace_id"] != body["trace"]:
            return False
        if "error" in body and body["error"] != (run["error"] is not None):
            return False
        return "start_time" not in body or run["start_time"] >= body["start_time"][:26]


@contextmanager
def langsmith(*runs: Any, **more: Any) -> Iterator[LangSmithServer]:
    """A server with these runs while the body does."""
    server = LangSmithServer(runs, **more)
    try:
        yield server
    finally:
        server.close()
