"""Holdfast's planes in a thread of their own, so that blocking clients can be led through them; and a provider."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from aiohttp import web

from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.model.trace import TraceEvent
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from holdfast.planes.trial_address import TrialAddress
from planes_kit import ASKED, FakeContext

C = TypeVar("C")
T = TypeVar("T")

LIMIT_S = 30
TEXT = "The revenue of ACME was 4.2 million euros in 2025 — up from 3.9 million. A good year, all in all."
RECORD = '{"company": "ACME", "revenue": 4200000, "currency": "EUR"}'
REFUSAL = "I'm sorry, but I can't help with that."
USAGE = (1000, 200)
ARGUMENTS = {"city": "Zürich", "days": 3}
FOUND = {"city": "Zürich", "temperature": 21, "days": [18, 21, 24]}
"""What the tool gives."""
MODEL = f"""
replies:
  - match: {{tool: forecast}}
    text: "{{{{ result }}}}"
  - match: {{tools: forecast}}
    tool_calls: [{{name: forecast, arguments: {{city: Zürich, days: 3}}}}]
    usage: {{input_tokens: {USAGE[0]}, output_tokens: {USAGE[1]}}}
  - match: {{prompt: "*record*"}}
    text: '{RECORD}'
  - match: {{prompt: "*secret*"}}
    text: "{REFUSAL}"
  - text: "{TEXT}"
    usage: {{input_tokens: {USAGE[0]}, output_tokens: {USAGE[1]}}}
"""


# -- what a client met ----------------------------------------------------------------------------
@dataclass
class Asking:
    """A tool call as the client read it."""

    id: str
    name: str
    arguments: Any
    """A text where the client gives one, else the object."""

    @property
    def read(self) -> Any:
        return json.loads(self.arguments) if isinstance(self.arguments, str) else self.arguments


@dataclass
class Got:
    """What a client made of a reply, up to where it broke off."""

    text: str = ""
    calls: list[Asking] = field(default_factory=list)
    finish: str | None = None
    usage: tuple[int, int] | None = None
    model: str = ""
    lacks: str = ""
    """`choices` or `message`, where the client was given none."""
    hollow: int = 0
    """Chunks of a stream without a choice in them."""
    error: Exception | None = None


def attempt(talk: Callable[[Got], None]) -> Got:
    """Lets a client talk; an exception is what it met, too."""
    got = Got()
    try:
        talk(got)
    except Exception as error:
        got.error = error
    return got


# -- the planes -----------------------------------------------------------------------------------
class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT_S)
        self._loop.close()


class ServedTrial:
    """One trial under way: where its client is led to, and what is written down about it."""

    def __init__(self, address: TrialAddress, context: FakeContext) -> None:
        self.environ = address.environ
        self.address = address
        self.context = context

    @property
    def met(self) -> list[tuple[str, str, int, int, str, str]]:
        """The ledger: plane, target, call, retry, mode, effect."""
        return [(f.plane, f.target, f.call, f.retry, f.mode, f.effect) for f in self.context.ledger]

    @property
    def calls(self) -> list[TraceEvent]:
        """The model calls of the trace, in the order in which they began."""
        return sorted([e for e in self.context.trace if e.event_type == "llm_call"], key=lambda e: e.ts)

    @property
    def tools(self) -> list[TraceEvent]:
        return [e for e in self.context.trace if e.event_type == "tool_call"]


class Place:
    """A planes in a loop of its own, with one address that serves trial after trial, and others on demand."""

    def __init__(self, loop: Loop, settings: PlaneSettings) -> None:
        self.loop = loop
        self.site_planes = loop.run(self._open(settings))
        self.broken: list[Exception] = []
        """What went wrong on our side of the wire."""
        self.address = loop.run(self.open_address())
        self._clients: dict[Any, Any] = {}

    async def _open(self, settings: PlaneSettings) -> SitePlanes:
        return SitePlanes(settings)

    async def open_address(self) -> TrialAddress:
        address = await self.site_planes.open_address()
        address.listener.on_error = lambda _, error: self.broken.append(error)
        return address

    def client(self, kind: Callable[..., C], timeout_s: float = 10.0) -> C:
        """A client that is led to the address, made once: that takes them longer than a call."""
        key = (kind, timeout_s)
        if key not in self._clients:
            self._clients[key] = kind(self.address.environ, timeout_s)
        return self._clients[key]  # type: ignore[no-any-return]

    @contextmanager
    def sail(
        self,
        *injections: Injection,
        address: TrialAddress | None = None,
        seed: int = 0,
        id: str = "0123456789ab",
        task: Task = ASKED,
    ) -> Iterator[ServedTrial]:
        """A trial in this weather; an exception on our side of the wire fails the test."""
        context, at = FakeContext(list(injections), seed=seed, id=id, task=task), address or self.address
        carried = at.serve_trial(context)
        self.loop.run(_called(carried.__enter__))
        try:
            yield ServedTrial(at, context)
        finally:
            self.loop.run(_called(lambda: carried.__exit__(None, None, None)))
        assert self.broken == []

    async def close(self) -> None:
        for client in self._clients.values():
            client.close()
        await self.address.close()
        await self.site_planes.close()


async def _called(work: Callable[[], Any]) -> None:
    work()
    await asyncio.sleep(0.001)  # what was closed is closed


@contextmanager
def site_planes(
    models: Mapping[str, ModelSpec] | None = None, environ: Mapping[str, str] | None = None, **more: Any
) -> Iterator[Place]:
    """The planes of a started agent; `model.yaml` in their folder is the scripted model above."""
    loop = Loop()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.yaml").write_text(MODEL, encoding="utf-8")
        agent = AgentSpec(type="command", command="agent")
        place = Place(loop, PlaneSettings(agent, Path(folder), environ or {}, models or {}, **more))
        try:
            yield place
        finally:
            loop.run(place.close())
            loop.close()


SCRIPTED = {"*": ModelSpec("script", script="model.yaml")}


# -- a provider -----------------------------------------------------------------------------------
CUT_OFF = b"(the connection is lost)"


class Provider:
    """A server on loopback that says what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[tuple[str, Mapping[str, str], Any]] = []
        """Path, headers and decoded body of each request."""
        self.says: list[tuple[int, str, Sequence[bytes]]] = []
        """Status, content type and chunks, one for each request; the last for all that follow."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append((request.path_qs, request.headers, json.loads(body) if body else None))
        status, kind, chunks = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if len(chunks) == 1:
            return web.Response(status=status, body=chunks[0], headers={"content-type": kind})
        reply = web.StreamResponse(status=status, headers={"content-type": kind})
        await reply.prepare(request)
        for chunk in chunks:
            if chunk == CUT_OFF and request.transport is not None:
                request.transport.abort()
            await reply.write(chunk)
            await asyncio.sleep(0.001)
        return reply


@contextmanager
def provider(*says: tuple[int, str, Sequence[bytes]]) -> Iterator[Provider]:
    """A provider that is there for the time of the block."""
    loop, server = Loop(), Provider()
    server.says = list(says)

    async def begin() -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", server.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    runner = loop.run(begin())
    try:
        yield server
    finally:
        loop.run(runner.cleanup())
        loop.close()
