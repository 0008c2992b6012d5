"""Servers on this machine for the tests of the HTTP agent, and a short way to ask them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import Any

from aiohttp import web

from holdfast.agents.http.agent import HttpAgent
from holdfast.model.observation import Answer, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.model.trial import Trial

TRIAL = Trial(id="0" * 12, kind="contract", scenario=Scenario("calm"), task=Task(("hi",)))

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
RawHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Plain:
    """A world whose prompts reach the agent through `rewrite`; it is its own context, and all parts of that."""

    trial = TRIAL
    planes = None
    has_limits = False
    is_restarted = False
    earlier: tuple[Turn, ...] = ()

    def __init__(self, rewrite: Callable[[str], str] = lambda text: text) -> None:
        self.rewrite_turn = rewrite
        self.losses = 0
        self.context = self.injector = self.sink = self.turns = self

    def count_activity(self) -> int:
        return 0

    def choose_first(self, task: Task) -> str:
        return task.turns[0]

    async def choose_next(self, task: Task, turns: Sequence[Turn]) -> str | None:
        return task.turns[len(turns)] if len(turns) < len(task.turns) else None

    def time_left_s(self) -> float:
        return inf

    def drop_turn_attacks(self) -> None:
        self.losses += 1


@asynccontextmanager
async def web_server(handler: Handler) -> AsyncIterator[str]:
    """A real HTTP server that gives every request to `handler`."""
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{rest:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/ask"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw_server(handler: RawHandler) -> AsyncIterator[str]:
    """A TCP server: `handler` writes the bytes itself."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/ask"
    finally:
        server.close()
        await server.wait_closed()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """One request: its head, and as much body as it declares."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(x.split(b":")[1]) for x in head.lower().split(b"\r\n") if x.startswith(b"content-length")), 0)
    return head + await reader.readexactly(length)


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[HttpAgent]:
    agent = await HttpAgent.open(AgentSpec(endpoint=url, **settings), limit=4)
    try:
        yield agent
    finally:
        await agent.close()


def ask_web(handler: Handler, *turns: str, context: Any = None, **settings: Any) -> Answer:
    """What the agent behind `handler` gives for the turns."""

    async def go() -> Answer:
        async with web_server(handler) as url, opened(url, **settings) as agent:
            return await agent.run(Task(turns or ("hi",)), context or Plain())

    return asyncio.run(go())


def ask_raw(handler: RawHandler, *turns: str, **settings: Any) -> Answer:
    async def go() -> Answer:
        async with raw_server(handler) as url, opened(url, **settings) as agent:
            return await agent.run(Task(turns or ("hi",)), Plain())

    return asyncio.run(go())


def reply_turn(
    body: bytes | str, *, status: int = 200, content_type: str = "application/json", **settings: Any
) -> Turn:
    """The one turn that a server with this fixed reply leads to."""

    async def handler(request: web.Request) -> web.Response:
        raw = body.encode() if isinstance(body, str) else body
        return web.Response(body=raw, status=status, headers={"Content-Type": content_type})

    return ask_web(handler, **settings).turns[0]


@contextmanager
def recorded() -> Iterator[tuple[list[dict[str, Any]], Handler]]:
    """A handler that answers `ok`, and the requests it has seen."""
    seen: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(
            {
                "method": request.method,
                "path": request.path,
                "query": list(request.query.items()),
                "headers": dict(request.headers),
                "body": await request.text(),
            }
        )
        return web.json_response({"output": "ok"})

    yield seen, handler
