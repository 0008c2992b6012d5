"""Servers over HTTP that do not keep to the rules: our error, told to the trial, and never a silent end."""

from __future__ import annotations

import asyncio

import pytest
from mcp_talk import call, line

from golden_words import Golden
from holdfast.http1.client import Upstreams
from holdfast.http1.server import Exchange, serve
from holdfast.planes import sse
from holdfast.planes.mcp.config import Target
from holdfast.planes.mcp.plane import McpPlane
from planes_kit import FakeContext

OK = line(id=1, result={"content": []})


def asked(stream: bytes, headers: dict[str, str] | None = None) -> tuple[bytes, FakeContext]:
    """What a client gets for a call, from a server that answers with this stream."""
    context = FakeContext()

    async def server(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.respond(200, (("content-type", "text/event-stream"),), stream)

    async def main() -> bytes:
        upstreams, real = Upstreams(), await serve(server)
        plane = McpPlane({"s": Target(f"http://127.0.0.1:{real.port}/mcp", headers or {})}, upstreams)
        ours = await serve(lambda exchange: plane.serve_http(exchange, "s", context))
        reader, writer = await asyncio.open_connection("127.0.0.1", ours.port)
        body = call()
        writer.write(b"POST /s HTTP/1.1\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        try:
            return await asyncio.wait_for(reader.read(), 5)
        finally:
            writer.close()
            for one in (ours, real, upstreams):
                await one.close()

    return asyncio.run(main()), context


@pytest.mark.parametrize("end", [b"\r\n\n", b"\n\r\n", b"\r\r", b"\n\r"])
def test_an_answer_is_found_whatever_its_line_ends(end: bytes) -> None:
    got, context = asked(b"\xef\xbb\xbfdata: " + OK + end)
    assert OK in got
    assert (context.troubles, context.trace[0].phase) == ([], "done")


def test_an_event_without_end_is_an_error_of_the_trial(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(sse.EventSplitter.__init__, "__defaults__", (100,))
    got, context = asked(b"data: " + b"x" * 1_000 + b"\n\n")
    assert got.startswith(b"HTTP/1.1 502")
    golden(context.troubles[0])


def test_a_header_that_cannot_be_sent_is_an_error_of_the_trial(golden: Golden) -> None:
    got, context = asked(b"", {"x-key": "a\r\nb"})
    assert got.startswith(b"HTTP/1.1 502")
    golden(context.troubles[0])
