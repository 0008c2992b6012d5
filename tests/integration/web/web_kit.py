"""A small project with runs, a viewer over it in a thread, and a client that sends what it is told to."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holdfast.web.viewer import Viewer

HOSTILE = "<script>alert(1)</script></script><img src=x onerror=alert(2)> \u202e\u0000 é 😀"
GUESS = "it is $12.00, trust me"

AGENT = f"""
HOSTILE = {HOSTILE!r}

def search(query):
    return "a source says " + query + HOSTILE

def careful(prompt):
    try:
        return search(prompt)
    except Exception as failure:
        return f"sorry, no source: {{failure}}"

def careless(prompt):
    try:
        return search(prompt)
    except Exception:
        return {GUESS!r}
"""

SPEC = """
version: "2.0"
agent: {{type: python, endpoint: "agent:{version}", tools: ["agent:search"], isolation: inline}}
golden_prompts: ["What is it?", "How much?"]
contract:
  name: Small
  invariants:
    - {{id: cites, type: contains, value: source, severity: critical, description: "Names its source"}}
    - {{id: quick, type: latency, max_ms: 60000}}
  chaos_matrix:
    - {{name: calm}}
    - {{name: down, tool_faults: [{{tool: search, mode: error, error_code: 503}}]}}
"""


def holdfast(folder: Path, *words: str) -> int:
    """The command line, in this process."""
    from holdfast.cli.main import run

    with chdir(folder), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        return run(words)


def make_project(folder: Path) -> Path:
    """A folder with a careful run, `0001`, and a careless one, `0002`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text(AGENT)
    for version in ("careful", "careless"):
        (folder / "holdfast.yaml").write_text(SPEC.format(version=version))
        holdfast(folder, "contract", "run", "--no-report", "-q")
    return folder


@dataclass(frozen=True)
class Got:
    """A reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ViewerClient:
    """Asks one viewer."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.port, self.token = int(parts.port or 0), parts.path.strip("/")

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes | None = None,
        *,
        outside: bool = False,
        **headers: str,
    ) -> Got:
        """A request below the token, or `outside` of it; `host="evil"` is a header."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path if outside else f"/{self.token}/{path}", body, sent)
            reply = connection.getresponse()
            data = reply.read()
        finally:
            connection.close()
        found = {name.lower(): value for name, value in reply.getheaders()}
        return Got(reply.status, found, gzip.decompress(data) if found.get("content-encoding") == "gzip" else data)

    def get(self, path: str) -> Any:
        """The answer to a question that is answered."""
        got = self.ask(f"api/{path}")
        assert got.status == 200, (path, got.body)
        return got.json

    def refused(self, path: str) -> tuple[int, str]:
        got = self.ask(f"api/{path}")
        return got.status, got.json["error"]

    @contextmanager
    def listening(self, query: str = "") -> Iterator[Callable[[str], Any]]:
        """Events as they come: what is given waits for the next of that name."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", f"/{self.token}/api/events{query}")
        reply = connection.getresponse()
        assert reply.status == 200
        assert reply.getheader("content-type") == "text/event-stream"

        end = time.monotonic() + 20

        def wait(name: str) -> Any:
            while line := reply.readline():
                assert time.monotonic() < end, f"no {name} in time"
                if line == f"event: {name}\n".encode():
                    return json.loads(reply.readline().removeprefix(b"data: "))
            raise AssertionError(f"the stream ended before {name}")

        try:
            yield wait
        finally:
            reply.close()
            connection.close()


@contextmanager
def viewing(folder: Path) -> Iterator[ViewerClient]:
    """A viewer over the runs of that folder, ended with the body."""
    started, found = threading.Event(), list[Any]()

    async def serve() -> None:
        viewer = Viewer(folder / ".holdfast" / "runs", os.environ)
        await viewer.open()
        found.extend([viewer.url, asyncio.get_running_loop(), over := asyncio.Event()])
        started.set()
        await over.wait()
        await viewer.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(20)
    url, loop, over = found
    client = ViewerClient(url)
    try:
        wait_until(lambda: client.get("runs?limit=0")["indexing"] == 0)
        yield client
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(20)
        assert not thread.is_alive()


def tree_digest(folder: Path) -> str:
    """Of every name, content, mode and time below a folder."""
    found = sha256()
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        found.update(f"{path.relative_to(folder)} {about.st_mode} {about.st_size} {about.st_mtime_ns}\n".encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


def wait_until(true: Callable[[], object], timeout_s: float = 20) -> None:
    end = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
