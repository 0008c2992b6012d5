"""An upstream's own refusal is told with what it says, also of an agent that leaves when it has seen the status."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.http1.server import Exchange, serve
from holdfast.model.model_spec import ModelSpec
from holdfast.model.spec import AgentSpec
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from planes_kit import FakeContext

ASKED = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'
REFUSED = b'{"error": {"message": "slow down"}}'


@pytest.mark.parametrize("length", [len(REFUSED), None], ids=["of known length", "chunked"])
def test_the_body_of_a_refusal_that_comes_after_its_head_is_reported(
    tmp_path: Path, length: int | None, golden: Golden
) -> None:
    async def late(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.start(429, (("content-type", "application/json"),), length)
        await asyncio.sleep(0.1)
        await exchange.write(REFUSED)
        await exchange.finish()

    async def main() -> FakeContext:
        context, server = FakeContext(), await serve(late)
        models = {"*": ModelSpec("openai", base_url=f"http://127.0.0.1:{server.port}/v1", api_key="sk-own")}
        site_planes = SitePlanes(
            PlaneSettings(AgentSpec(type="command", command="agent"), tmp_path, {}, models, web=False)
        )
        address = await site_planes.open_address()
        try:
            with address.serve_trial(context):
                reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
                path = f"/{address.token}/openai/v1/chat/completions".encode()
                writer.write(b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (path, len(ASKED)) + ASKED)
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
                assert head.startswith(b"HTTP/1.1 429")
                writer.close()
        finally:
            await address.close()
            await site_planes.close()
            await server.close()
        return context

    (trouble,) = asyncio.run(main()).troubles
    golden(trouble)
