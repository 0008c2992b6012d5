"""What the trace has of requests that pass unread, and whose a wait was when the agent leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from upstream_server import Server, serving

from holdfast.http1.client import UpstreamReply, Upstreams
from holdfast.model.model_spec import ModelSpec
from holdfast.model.spec import AgentSpec
from holdfast.model.trace import TraceEvent
from holdfast.planes.llm.call_record import read_usage
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from planes_kit import FakeContext

Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]
ASKED = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}]}'


def asked(
    folder: Path, respond: Respond, method: str, path: str, body: bytes | None, *, hold_s: float | None = None
) -> TraceEvent:
    """The event of one request; with `hold_s` the client reads nothing and is there for so long."""

    async def main() -> TraceEvent:
        context = FakeContext()
        async with serving() as server:
            assert isinstance(server, Server)
            server.respond = respond
            models = {"*": ModelSpec("openai", base_url=f"{server.url}/v1", api_key="sk-own", input_usd=1.0)}
            site_planes = SitePlanes(
                PlaneSettings(AgentSpec(type="command", command="agent"), folder, {}, models, web=False)
            )
            address = await site_planes.open_address()
            client = Upstreams()
            try:
                with address.serve_trial(context):
                    url = f"{address.environ['OPENAI_BASE_URL']}{path}"
                    sending: Awaitable[UpstreamReply] = client.send(
                        method, url, [("content-type", "application/json")], body
                    )
                    if hold_s is None:
                        await (await sending).read(100_000)
                    else:
                        task = asyncio.ensure_future(sending)
                        await asyncio.sleep(hold_s)
                        task.cancel()
            finally:
                await client.close()
                await address.close()
                await site_planes.close()
        return context.trace[0]

    return asyncio.run(main())


async def listed(request: web.Request) -> web.StreamResponse:
    return web.json_response({"object": "list", "data": [{"id": "m"}]})


async def embedded(request: web.Request) -> web.StreamResponse:
    return web.json_response({"data": [{"embedding": [0.1]}], "usage": {"prompt_tokens": 7, "total_tokens": 7}})


async def silent(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(0.6)
    return await listed(request)


async def flooding(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(2_000):
        await response.write(b"data: " + b" " * 65_536 + b"\n\n")
    return response


def test_a_list_of_models_is_an_http_call_of_the_model_plane(tmp_path: Path) -> None:
    event = asked(tmp_path, listed, "GET", "/models", None)
    assert (event.event_type, event.plane, event.tool) == ("http_call", "llm", "GET /v1/models")


def test_embeddings_are_model_calls_that_say_what_they_used(tmp_path: Path) -> None:
    event = asked(tmp_path, embedded, "POST", "/embeddings", b'{"model": "m", "input": "text"}')
    assert event.event_type == "llm_call"
    assert event.cost is not None
    assert (event.cost.model, event.cost.input_tokens, event.cost.output_tokens) == ("m", 7, 0)
    assert event.cost.estimated_usd == pytest.approx(7e-6)


@pytest.mark.parametrize(
    ("body", "used"),
    [
        (b'{"usage": {"prompt_tokens": 3, "completion_tokens": 2}}', (3, 2)),
        (b'{"usage": {"input_tokens": 3, "output_tokens": 2}}', (3, 2)),
        (b'{"embeddings": [[1]], "prompt_eval_count": 4}', (4, 0)),
        (b'{"usage": {"prompt_tokens": "many"}}', None),
        (b'{"embedding": {"values": [1]}}', None),
        (b"[" * 100_000, None),
        (b"\xff", None),
    ],
)
def test_usage_is_read_from_a_reply_that_states_it(body: bytes, used: Any) -> None:
    found = read_usage(body)
    assert (found and (found.input_tokens, found.output_tokens)) == used


def test_a_wait_for_a_silent_upstream_is_reported_and_a_stream_that_the_agent_does_not_read_is_not_one(
    tmp_path: Path,
) -> None:
    waiting = asked(tmp_path, silent, "POST", "/chat/completions", ASKED, hold_s=0.4)
    assert waiting.error_type == "client_gone"
    assert 200 < waiting.waited_ms < 600
    held = asked(tmp_path, flooding, "POST", "/chat/completions", ASKED, hold_s=0.6)
    assert held.error_type == "client_gone"
    assert held.duration_ms > 300
    assert held.waited_ms < 100
