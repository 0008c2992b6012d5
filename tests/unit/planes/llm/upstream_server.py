"""A provider on loopback for tests, and routers that lead to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from upstream_kit import read

from holdfast.http1.client import Upstreams
from holdfast.model.model_spec import ModelSpec
from holdfast.planes.llm.sources.router import Router
from holdfast.planes.llm.sources.source import PLACEHOLDER_KEY, Query

AGENT = (("Authorization", "Bearer sk-agent"), ("x-own", "1"), ("Accept-Encoding", "gzip"))
PLACEHOLDER = (("authorization", f"Bearer {PLACEHOLDER_KEY}"),)
SAID = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "served",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}


class Server:
    """A provider on loopback that keeps what it was asked."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Mapping[str, str], Any]] = []
        self.url = ""
        self.respond: Callable[[web.Request], Awaitable[web.StreamResponse]] = self._hello

    async def _hello(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(SAID)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append((request.path_qs, request.headers, json.loads(body) if body else None))
        return await self.respond(request)

    @property
    def path(self) -> str:
        return self.seen[-1][0]

    @property
    def headers(self) -> Mapping[str, str]:
        return self.seen[-1][1]


@asynccontextmanager
async def serving() -> Any:
    server = Server()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def served(
    test: Callable[[Server, Callable[..., Router]], Awaitable[None]],
) -> None:
    """Runs a test with a server and a maker of routers: `route(models, environ, **more)`."""

    async def run() -> None:
        upstreams = Upstreams()
        async with serving() as server:

            def route(
                models: Mapping[str, ModelSpec] | None = None, environ: Mapping[str, str] | None = None, **more: Any
            ) -> Router:
                return Router(models or {}, environ or {}, Path(), upstreams, **more)

            try:
                await test(server, route)
            finally:
                await upstreams.close()

    asyncio.run(run())


async def answer(router: Router, asked: Query) -> tuple[int, Any]:
    status, chunks = await read(await router.get_source(asked.provider, asked.model).answer(asked))
    return status, json.loads(b"".join(chunks))
