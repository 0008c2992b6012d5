"""A plain reply that has come whole goes on in one piece, as it is; one that has not goes on as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from holdfast.http1.server import Exchange, serve
from holdfast.model.codec import create_decoder
from holdfast.model.model_spec import ModelSpec
from holdfast.model.spec import AgentSpec
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from planes_kit import FakeContext

ASKED = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'
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
                    b"POST %b HTTP/1.1\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (path, len(ASKED))
                )
                writer.write(ASKED)
                head, _, rest = (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n\r\n")
                writer.close()
        finally:
            await address.close()
            await site_planes.close()
            await server.close()
        return context, head.split(b"\r\n"), rest

    return asyncio.run(main())


@pytest.mark.parametrize("answer", [at_once, in_two])
def test_a_reply_of_known_length_keeps_its_first_line_its_headers_and_its_length(
    tmp_path: Path, answer: Answer
) -> None:
    context, head, body = passed(tmp_path, answer)
    assert head[0] == b"HTTP/1.1 200 Fine"
    assert head[1:4] == [b"X-Request-Id: r1", b"content-type: application/json", b"X-Request-Id: r2"]
    assert head[4] == b"Content-Length: %d" % len(REPLY)
    assert body == REPLY
    (event,) = context.trace
    assert (event.status, event.error_type, event.output) == (200, "", "Olé")
    assert event.cost is not None
    assert (event.cost.input_tokens, event.cost.output_tokens) == (3, 2)


def test_a_reply_in_chunks_stays_in_chunks_though_all_of_it_has_come(tmp_path: Path) -> None:
    context, head, body = passed(tmp_path, chunked)
    assert b"Transfer-Encoding: chunked" in head
    assert body == b"%x\r\n%b\r\n0\r\n\r\n" % (len(REPLY), REPLY)
    assert context.trace[0].output == "Olé"


@pytest.mark.parametrize("answer", [at_once, in_two])
def test_a_recording_keeps_a_reply_however_it_came(tmp_path: Path, answer: Answer) -> None:
    tape = tmp_path / "tape.jsonl"
    passed(tmp_path, answer, tape)
    (line,) = tape.read_bytes().splitlines()
    assert "".join(create_decoder(dict).decode(line)["chunks"]).encode() == REPLY
