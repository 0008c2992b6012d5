"""Agents that Holdfast starts, in temporary folders: small real programs, asked through the real launcher."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from holdfast.agents.command.agent import CommandAgent
from holdfast.agents.http.launched import LaunchedHttpAgent
from holdfast.execute.context import LiveContext
from holdfast.execute.site import BareWorlds
from holdfast.model.observation import Answer
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.processes.peers import ProcessTree
from holdfast.protocols.trial import TrialContext
from holdfast.world.bare_world import Machine

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
def env(): return os.environ["PORT"] + " " + os.environ.get("ADDRESS", "-")
def floods():
    for _ in range(70): os.write(1, b"x" * 1_000_000)
    return "said"

if "DEAF" in os.environ: signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("starting", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
"""


def context_of(*turns: str, **fields: Any) -> LiveContext:
    return LiveContext(Trial("0123456789ab", "contract", Scenario("calm"), Task(turns or ("hi",)), **fields))


class Noted:
    """An address that remembers what was done with it."""

    def __init__(self) -> None:
        self.process_tree = ProcessTree()
        self.environ: Mapping[str, str] = {"ADDRESS": f"address-{id(self):x}"}
        self.carried: list[str] = []
        self.carries = False
        self.closed = False

    @contextmanager
    def serve_trial(self, context: Any) -> Iterator[None]:
        self.carried.append(context.trial.id)
        self.carries = True
        try:
            yield
        finally:
            self.carries = False

    async def close(self) -> None:
        self.closed = True


class NotedPlanes:
    """Opens addresses and keeps them for a look afterwards."""

    def __init__(self) -> None:
        self.addresses: list[Noted] = []

    async def open_address(self) -> Any:
        self.addresses.append(Noted())
        return self.addresses[-1]


class Launched:
    """An opened agent, asked in bare worlds of one machine."""

    def __init__(self, agent: CommandAgent | LaunchedHttpAgent, machine: Machine) -> None:
        self.agent = agent
        self.limit = agent.limit
        self.notes = agent.notes
        self._worlds = BareWorlds(machine)

    async def run(self, task: Task, context: TrialContext) -> Answer:
        return await self._worlds.run(self.agent, task, context)


@asynccontextmanager
async def launched(folder: Path, *, limit: int = 1, planes: Any = None, **settings: Any) -> AsyncIterator[Launched]:
    """An opened agent, its references resolved; without planes, its calls go where they always went."""
    environ = settings.pop("environ", dict(os.environ))
    section = AgentSpec(**settings)
    machine = Machine(folder, {**environ, **section.env}, planes)
    agent: CommandAgent | LaunchedHttpAgent | None = None
    try:
        if section.type == "command":
            agent = CommandAgent.open_on_machine(section, folder, environ)
        else:
            agent = await LaunchedHttpAgent.open_on_machine(section, folder, limit, machine.place)
        yield Launched(agent, machine)
    finally:
        if agent is not None:
            await agent.close()
        await machine.close()


def ask(folder: Path, *turns: str, context: Any = None, **settings: Any) -> Answer:
    """What a command agent gives for the turns."""

    async def go() -> Answer:
        async with launched(folder, **{"type": "command", **settings}) as agent:
            return await agent.run(Task(turns or ("hi",)), context or context_of(*turns))

    return asyncio.run(go())


def python(folder: Path, code: str) -> str:
    """A command that runs that code."""
    (folder / "agent.py").write_text(dedent(code), encoding="utf-8")
    return f"{PYTHON} agent.py"
