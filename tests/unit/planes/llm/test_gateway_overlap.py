"""Calls overlap if the agent had several under way: not where it only looks so, and also where a script is fast."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from threading import Barrier

from aiohttp import web
from upstream_server import serving

from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection, Schedule
from holdfast.model.spec import AgentSpec
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from planes_kit import FakeContext

NEVER = Injection("llm", "*", "rate_limit", {}, Schedule(on_call=100))
PATH = "/chat/completions"


def sent(url: str, prompt: str, barrier: Barrier | None = None, *, stream: bool = False) -> HTTPConnection:
    """A connection on which a model was asked."""
    place, _, path = url.removeprefix("http://").partition("/")
    connection = HTTPConnection(place, timeout=10)
    connection.connect()
    if barrier is not None:
        barrier.wait()
    body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": prompt}]}
    connection.request("POST", f"/{path}", json.dumps(body))
    return connection


def post(url: str, prompt: str, barrier: Barrier | None = None) -> None:
    with closing(sent(url, prompt, barrier)) as connection:
        connection.getresponse().read()


def overlapped(models: dict[str, ModelSpec], folder: Path, talk: Callable[[str], Awaitable[None]]) -> bool:
    """Whether a trial is told that its calls overlapped."""

    async def main() -> bool:
        return await sailed(models, folder, talk)

    return asyncio.run(main())


async def sailed(models: dict[str, ModelSpec], folder: Path, talk: Callable[[str], Awaitable[None]]) -> bool:
    context = FakeContext([NEVER])
    site_planes = SitePlanes(PlaneSettings(AgentSpec(type="command", command="agent"), folder, {}, models, web=False))
    address = await site_planes.open_address()
    with address.serve_trial(context):
        await talk(f"{address.environ['OPENAI_BASE_URL']}{PATH}")
    await address.close()
    await site_planes.close()
    return context.concurrent


def scripted(folder: Path) -> dict[str, ModelSpec]:
    (folder / "model.yaml").write_text("replies:\n  - text: hello\n", encoding="utf-8")
    return {"*": ModelSpec(script="model.yaml")}


def test_calls_sent_at_once_overlap_though_a_script_answers_each_at_once(tmp_path: Path) -> None:
    async def talk(url: str) -> None:
        barrier = Barrier(2)
        await asyncio.gather(*[asyncio.to_thread(post, url, prompt, barrier) for prompt in ("one", "two")])

    models = scripted(tmp_path)
    assert any(overlapped(models, tmp_path, talk) for _ in range(5)), "a busy machine may hold one of two threads back"


def test_calls_sent_one_after_the_other_do_not_overlap(tmp_path: Path) -> None:
    async def talk(url: str) -> None:
        for prompt in ("one", "two", "three"):
            await asyncio.to_thread(post, url, prompt)

    assert not overlapped(scripted(tmp_path), tmp_path, talk)


def test_a_stream_that_has_said_all_is_over_though_its_end_is_not_yet_there(tmp_path: Path) -> None:
    assert not asyncio.run(_lingering(tmp_path, b"data: [DONE]\n\n", "stop"))


def test_a_stream_that_is_still_speaking_is_not_over(tmp_path: Path) -> None:
    assert asyncio.run(_lingering(tmp_path, b"", None))


async def _lingering(folder: Path, end: bytes, finish: str | None) -> bool:
    """A second call while the first stream stays open."""
    done = asyncio.Event()

    async def lingering(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        chunk = {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": finish}], "model": "m"}
        await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n" + end)
        await done.wait()
        return response

    async def talk(url: str) -> None:
        first = await asyncio.to_thread(sent, url, "one", stream=True)
        reply = await asyncio.to_thread(first.getresponse)
        await asyncio.to_thread(reply.read1, 10)
        second = asyncio.ensure_future(asyncio.to_thread(post, url, "two"))
        await asyncio.sleep(0.1)
        done.set()
        await second
        first.close()

    async with serving() as server:
        server.respond = lingering
        models = {"*": ModelSpec("openai", base_url=f"{server.url}/v1", api_key="sk-own")}
        return await sailed(models, folder, talk)
