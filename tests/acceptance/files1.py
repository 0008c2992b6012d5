"""What the acceptance tests of documents and formats share: a project folder, the commands, and a real HTTP agent."""

from __future__ import annotations

import asyncio
import json
import socketserver
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli import Ended, run_here

from holdfast.model.spec import Problem, Spec
from holdfast.spec import CheckResult, LoadOptions, check
from holdfast.spec.explain import explain
from page_documents import documents

ECHO = """
def answer(prompt):
    return "Source: the ledger. You asked: " + prompt
"""
PYTHON = """
agent: {type: python, endpoint: "bot:answer"}
golden_prompts: ["What is the total?"]
"""
RULES = """
contract:
  name: C
  invariants:
    - {id: cites, type: contains, value: source}
"""
CALM = """
chaos_matrix:
  - name: no-chaos
"""
SPEC = PYTHON + RULES + CALM


# -- files --------------------------------------------------------------------------------------
def project(folder: Path, spec: str, agent: str = ECHO, **others: str) -> Path:
    """A folder with a spec and an agent called `bot`; gives the spec's path."""
    (folder / "bot.py").write_text(agent, "utf-8")
    for name, text in others.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    path = folder / "holdfast.yaml"
    path.write_text(spec, "utf-8")
    return path


def read(folder: Path, spec: str, environ: Mapping[str, str] | None = None, **overrides: Any) -> CheckResult:
    """The spec as the loader reads it."""
    return check(project(folder, spec), environ=environ or {}, options=LoadOptions(**overrides))


def spec_of(folder: Path, spec: str, environ: Mapping[str, str] | None = None, **overrides: Any) -> Spec:
    """The Spec of a text that must load."""
    checked = read(folder, spec, environ, **overrides)
    assert checked.spec is not None, explain("holdfast.yaml", checked.source, checked.problems)
    return checked.spec


def errors_of(folder: Path, spec: str, **overrides: Any) -> list[Problem]:
    return [p for p in read(folder, spec, **overrides).problems if p.severity == "error"]


def error_of(folder: Path, spec: str, **overrides: Any) -> Problem:
    """The one error of a text."""
    found = errors_of(folder, spec, **overrides)
    assert len(found) == 1, found
    return found[0]


def text_at(source: str, problem: Problem) -> str:
    """The characters of the file that a problem points at."""
    start = problem.column - 1
    return source.splitlines()[problem.line - 1][start : start + problem.length]


# -- commands -----------------------------------------------------------------------------------
class Told(Ended):
    """What became of a command that reports a contract."""

    @property
    def contract(self) -> Any:
        return self.json["parts"]["contract"]

    def cell(self, invariant: str, scenario: str = "no-chaos") -> Any:
        """One cell of a JSON report."""
        found = [c for c in self.contract["cells"] if (c["invariant"], c["scenario"]) == (invariant, scenario)]
        assert len(found) == 1, found
        return found[0]

    def trial(self, invariant: str, scenario: str = "no-chaos") -> Any:
        """The one trial of a cell."""
        trials = self.cell(invariant, scenario)["trials"]
        assert len(trials) == 1, trials
        return trials[0]


def tell(folder: Path, *args: str, **environ: str) -> Told:
    """Runs a command in a folder, in this process; every way it can end is an exit code."""
    return Told(*run_here(folder, args, environ))


def contract_run(folder: Path, spec: str, agent: str = ECHO, *args: str, **environ: str) -> Told:
    """`holdfast contract run --json` on a new project."""
    project(folder, spec, agent)
    return tell(folder, "contract", "run", "--json", "--no-report", *args, **environ)


def stored(folder: Path) -> str:
    """Everything that was written under .holdfast, as one text."""
    files = sorted(path for path in (folder / ".holdfast").rglob("*") if path.is_file())
    assert files, "nothing was stored"
    return "\n".join(text_of(path) for path in files)


def text_of(path: Path) -> str:
    """A file's text; of a page, with the data that it carries packed."""
    text = path.read_text("utf-8", "replace")
    return text + (json.dumps(documents(text), ensure_ascii=False) if path.suffix == ".html" else "")


# -- HTTP agents --------------------------------------------------------------------------------
@dataclass
class Request:
    """One request as the agent received it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class HttpAgent:
    """A real server on 127.0.0.1 and everything that reached it."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)

    def asked(self, path: str = "/ask") -> list[Request]:
        return [r for r in self.requests if r.path == path]


def http_section(agent: HttpAgent, more: str = "", prompts: str = '["What is the total?"]') -> str:
    """The agent section of a running agent, and what it is asked."""
    return f'agent: {{endpoint: "{agent.url}/ask"{more}}}\ngolden_prompts: {prompts}\n'


Respond = Callable[[Request], Any]
"""A reply: text or a value for JSON, (status, body), or (status, body, headers)."""


@contextmanager
def http_agent(respond: Respond) -> Iterator[HttpAgent]:
    """Serves `respond` at every path until the block ends."""
    agent = HttpAgent()
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(_serve(agent, respond, ready, stop)))
    thread.start()
    assert ready.wait(10), "the server did not start"
    try:
        yield agent
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def _serve(agent: HttpAgent, respond: Respond, ready: threading.Event, stop: asyncio.Event) -> None:
    from aiohttp import web

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = (await request.read()).decode("utf-8", "replace")
        seen = Request(request.method, request.path, dict(request.query), dict(request.headers), body)
        agent.requests.append(seen)
        reply = respond(seen)
        return _response(await reply if isinstance(reply, Awaitable) else reply)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    agent.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    ready.set()
    await stop.wait()
    await runner.cleanup()


def _response(reply: Any) -> Any:
    from aiohttp import web

    status, body, headers = (*reply, {})[:3] if isinstance(reply, tuple) else (200, reply, {})
    if isinstance(body, bytes):
        return web.Response(status=status, body=body, headers=headers)
    if isinstance(body, str):
        return web.Response(status=status, text=body, headers=headers)
    return web.json_response(body, status=status, headers=headers)


@contextmanager
def raw_agent(sent: bytes) -> Iterator[str]:
    """A server that takes each request, sends these bytes and closes."""

    class Answering(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65_536)
            self.request.sendall(sent)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
