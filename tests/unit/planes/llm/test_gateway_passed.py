"""Requests that pass unread: their events in the trace, and who was waiting when the agent left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from gateway_agent import Respond, run_served

from gateway_trial import gateway_for
from golden_words import Golden
from holdfast.http1.client import UpstreamReply, Upstreams
from holdfast.http1.server import Exchange, serve
from holdfast.model.codec import create_decoder
from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection
from holdfast.model.spec import AgentSpec
from holdfast.model.trace import TraceEvent
from holdfast.planes.llm.call_record import read_usage
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from planes_kit import FakeContext

ASKED = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}]}'


def asked(
    folder: Path, respond: Respond, method: str, path: str, body: bytes | None, *, hold_s: float | None = None
) -> TraceEvent:
    """The event of one request; with `hold_s` the client reads nothing and is there for so long."""

    async def agent(url: str) -> None:
        client = Upstreams()
        sending: Awaitable[UpstreamReply] = client.send(
            method, f"{url}{path}", [("content-type", "application/json")], body
        )
        try:
            if hold_s is None:
                await (await sending).read(100_000)
            else:
                task = asyncio.ensure_future(sending)
                await asyncio.sleep(hold_s)
                task.cancel()
        finally:
            await client.close()

    return run_served(folder, respond, agent).trace[0]


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


def test_embeddings_are_model_calls_with_usage(tmp_path: Path) -> None:
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


def test_only_a_silent_upstream_counts_as_a_wait(
    tmp_path: Path,
) -> None:
    waiting = asked(tmp_path, silent, "POST", "/chat/completions", ASKED, hold_s=0.4)
    assert waiting.error_type == "client_gone"
    assert 200 < waiting.waited_ms < 600
    held = asked(tmp_path, flooding, "POST", "/chat/completions", ASKED, hold_s=0.6)
    assert held.error_type == "client_gone"
    assert held.duration_ms > 300
    assert held.waited_ms < 100


# Requests to a provider's host that ask no model, and replies that hold less than they seem to.


SCRIPT = "replies: [{tool_calls: [{name: search, arguments: {}}]}]"
HELLO = b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}'


def post(context: FakeContext, folder: Path, path: str, body: bytes, *, scripted: bool = True) -> int:
    """Posts to OpenAI's base URL during a trial; the status."""
    (folder / "model.yaml").write_text(SCRIPT)
    models = {"*": ModelSpec("script", script="model.yaml")} if scripted else {}

    async def main() -> int:
        client = Upstreams()
        try:
            async with gateway_for(context, folder, models) as address:
                url = f"{address.environ['OPENAI_BASE_URL']}{path}"
                reply = await client.send("POST", url, [("content-type", "application/json")], body)
                await reply.read(10_000)
                return reply.status
        finally:
            await client.close()

    return asyncio.run(main())


@pytest.mark.parametrize("scripted", [True, False])
def test_rejected_telemetry_is_a_note(tmp_path: Path, scripted: bool) -> None:
    context = FakeContext()
    assert post(context, tmp_path, "/traces/ingest", b'{"data": []}', scripted=scripted) >= 400
    assert context.troubles == []
    assert len(context.notes) == 1
    (event,) = context.trace
    assert (event.event_type, event.plane, event.tool) == ("http_call", "http", "POST /v1/traces/ingest")


def test_an_endpoint_of_models_that_a_script_lacks_is_an_error(tmp_path: Path, golden: Golden) -> None:
    context = FakeContext()
    assert post(context, tmp_path, "/moderations", b'{"input": "x"}') == 404
    golden(context.troubles[0])
    assert [(event.event_type, event.plane) for event in context.trace] == [("http_call", "llm")]


def calls_asked_for(context: FakeContext) -> list[Any]:
    return [(event.tool, event.phase) for event in context.trace if event.event_type == "tool_call"]


def test_a_call_in_a_reply_that_a_fault_emptied_was_not_requested(tmp_path: Path) -> None:
    calm, hollow = FakeContext(), FakeContext([Injection("llm", "*", "empty_choices")])
    assert [post(context, tmp_path, "/chat/completions", HELLO) for context in (calm, hollow)] == [200, 200]
    assert calls_asked_for(calm) == [("search", "declared")]
    assert calls_asked_for(hollow) == []


# A plain reply that has come whole goes on in one piece, as it is; one that has not goes on as it comes.


ASKED_PLAIN = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'
REPLY = b"""{ "id": "c1", "model": "m", "choices": [ {"index": 0, "message": {"role": "assistant",
 "content": "Ol\\u00e9"}, "finish_reason": "stop"} ], "usage": {"prompt_tokens": 3, "completion_tokens": 2} }\n"""
HEADERS = (("X-Request-Id", "r1"), ("content-type", "application/json"), ("X-Request-Id", "r2"))

Answer = Callable[[Exchange], Awaitable[None]]


async def at_once(exchange: Exchange) -> None:
    await exchange.read_body()
    await exchange.respond(200, HEADERS, REPLY, reason="Fine")


async def in_two(exchange: Exchange) -> None:
    await exchange.read_body()
    await exchange.start(200, HEADERS, len(REPLY), reason="Fine")
    await exchange.write(REPLY[:40])
    await asyncio.sleep(0.05)
    await exchange.write(REPLY[40:])
    await exchange.finish()


async def chunked(exchange: Exchange) -> None:
    await exchange.read_body()
    await exchange.start(200, HEADERS, reason="Fine")
    await exchange.write(REPLY)
    await exchange.finish()


def passed(folder: Path, answer: Answer, record: Path | None = None) -> tuple[FakeContext, list[bytes], bytes]:
    """The trial, the lines of the head that the agent got, and the rest."""

    async def main() -> tuple[FakeContext, list[bytes], bytes]:
        context, server = FakeContext(), await serve(answer)
        models = {"*": ModelSpec("openai", base_url=f"http://127.0.0.1:{server.port}/v1", api_key="sk-own")}
        settings = PlaneSettings(
            AgentSpec(type="command", command="agent"), folder, {}, models, web=False, record=record
        )
        site_planes = SitePlanes(settings)
        address = await site_planes.open_address()
        try:
            with address.serve_trial(context):
                reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
                path = f"/{address.token}/openai/v1/chat/completions".encode()
                writer.write(
                    b"POST %b HTTP/1.1\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (path, len(ASKED_PLAIN))
                )
                writer.write(ASKED_PLAIN)
                head, _, rest = (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n\r\n")
                writer.close()
        finally:
            await address.close()
            await site_planes.close()
            await server.close()
        return context, head.split(b"\r\n"), rest

    return asyncio.run(main())


@pytest.mark.parametrize("answer", [at_once, in_two])
def test_a_reply_of_known_length_keeps_its_head(tmp_path: Path, answer: Answer) -> None:
    context, head, body = passed(tmp_path, answer)
    assert head[0] == b"HTTP/1.1 200 Fine"
    assert head[1:4] == [b"X-Request-Id: r1", b"content-type: application/json", b"X-Request-Id: r2"]
    assert head[4] == b"Content-Length: %d" % len(REPLY)
    assert body == REPLY
    (event,) = context.trace
    assert (event.status, event.error_type, event.output) == (200, "", "Olé")
    assert event.cost is not None
    assert (event.cost.input_tokens, event.cost.output_tokens) == (3, 2)


def test_a_chunked_reply_stays_chunked(tmp_path: Path) -> None:
    context, head, body = passed(tmp_path, chunked)
    assert b"Transfer-Encoding: chunked" in head
    assert body == b"%x\r\n%b\r\n0\r\n\r\n" % (len(REPLY), REPLY)
    assert context.trace[0].output == "Olé"


@pytest.mark.parametrize("answer", [at_once, in_two])
def test_a_reply_is_recorded_however_it_arrived(tmp_path: Path, answer: Answer) -> None:
    tape = tmp_path / "tape.jsonl"
    passed(tmp_path, answer, tape)
    (line,) = tape.read_bytes().splitlines()
    assert "".join(create_decoder(dict).decode(line)["chunks"]).encode() == REPLY
