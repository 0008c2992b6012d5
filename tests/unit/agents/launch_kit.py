"""Agents that Holdfast starts, in temporary folders: small real programs, asked through the real launcher."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from holdfast.agents.launching import open_launched
from holdfast.execute.trial import LiveContext
from holdfast.model.observation import Answer
from holdfast.model.spec import CALM, AgentSpec, Task
from holdfast.model.trial import Trial
from holdfast.planes.process_tree import ProcessTree

PYTHON = sys.executable

SERVER = """
import http.server, json, os, signal, subprocess, sys, time

asked = 0

class Agent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        global asked
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b'{"input": ""}')["input"]
        if self.path == "/reset":
            asked = 0
            return self.reply("")
        asked += 1
        print("asked", prompt, flush=True)
        self.reply(getattr(sys.modules["__main__"], prompt)() if prompt in WAYS else str(asked))
    def do_GET(self):
        self.reply("up")
    def reply(self, text):
        body = json.dumps({"output": text}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass

WAYS = ("dies", "hangs", "daemon", "pid", "env", "floods")
def dies():
    print("no luck", file=sys.stderr, flush=True)
    os._exit(3)
def hangs(): time.sleep(60)
def daemon():
    subprocess.Popen(["setsid", "sleep", "60"])
    return "left one"
def pid(): return str(os.getpid())
def env(): return os.environ["PORT"] + " " + os.environ.get("BERTH", "-")
def floods():
    for _ in range(70): os.write(1, b"x" * 1_000_000)
    return "said"

if "DEAF" in os.environ: signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("starting", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
"""


def trip_of(*turns: str, **fields: Any) -> LiveContext:
    return LiveContext(Trial("0123456789ab", "contract", "calm", Task(turns or ("hi",)), **fields), CALM)


class Noted:
    """A address that remembers what was done with it."""

    def __init__(self) -> None:
        self.process_tree = ProcessTree()
        self.environ: Mapping[str, str] = {"BERTH": f"berth-{id(self):x}"}
        self.carried: list[str] = []
        self.carries = False
        self.closed = False

    @contextmanager
    def carry(self, context: Any) -> Iterator[None]:
        self.carried.append(context.trial.id)
        self.carries = True
        try:
            yield
        finally:
            self.carries = False

    async def close(self) -> None:
        self.closed = True


class Pier:
    """Opens addresses and keeps them for a look afterwards."""

    def __init__(self) -> None:
        self.berths: list[Noted] = []

    async def __call__(self) -> Any:
        self.berths.append(Noted())
        return self.berths[-1]


class Unmoored:
    """A address without planes: calls go where they always went."""

    environ: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.process_tree = ProcessTree()

    @contextmanager
    def carry(self, context: Any) -> Iterator[None]:
        yield

    async def close(self) -> None:
        return


async def unmoored() -> Any:
    """Opens a address without planes."""
    return Unmoored()


@asynccontextmanager
async def launched(
    folder: Path, *, limit: int = 1, open_address: Any = unmoored, **settings: Any
) -> AsyncIterator[Any]:
    """An opened agent, its references resolved."""
    environ = settings.pop("environ", dict(os.environ))
    agent = await open_launched(AgentSpec(**settings), folder, environ, limit, open_address)
    try:
        yield agent
    finally:
        await agent.close()


def ask(folder: Path, *turns: str, context: Any = None, **settings: Any) -> Answer:
    """What a command agent gives for the turns."""

    async def go() -> Answer:
        async with launched(folder, **{"type": "command", **settings}) as agent:
            return await agent.run(Task(turns or ("hi",)), context or trip_of(*turns))

    return asyncio.run(go())


def python(folder: Path, code: str) -> str:
    """A command that runs that code."""
    (folder / "agent.py").write_text(dedent(code), encoding="utf-8")
    return f"{PYTHON} agent.py"


def marked(name: str, value: str) -> list[int]:
    """The live processes whose environment holds this variable."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            alive = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            continue
        if alive and f"{name}={value}".encode() in environ:
            found.append(pid)
    return found


def gone(name: str, value: str, within_s: float = 5.0) -> bool:
    """Whether no such process is left, now or soon."""
    until = time.monotonic() + within_s
    while marked(name, value):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
