"""Requests to a provider's host that ask no model, and replies that hold less than they seem to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from golden_words import Golden
from holdfast.http1.client import Upstreams
from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection
from holdfast.model.spec import AgentSpec
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from planes_kit import FakeContext

SCRIPT = "replies: [{tool_calls: [{name: search, arguments: {}}]}]"
ASKED = b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}'


def post(context: FakeContext, folder: Path, path: str, body: bytes, *, scripted: bool = True) -> int:
    """Posts to OpenAI's base URL during a trial; the status."""
    (folder / "model.yaml").write_text(SCRIPT)
    models = {"*": ModelSpec("script", script="model.yaml")} if scripted else {}

    async def main() -> int:
        site_planes = SitePlanes(
            PlaneSettings(AgentSpec(type="command", command="agent"), folder, {}, models, web=False)
        )
        address = await site_planes.open_address()
        client = Upstreams()
        try:
            with address.serve_trial(context):
                url = f"{address.environ['OPENAI_BASE_URL']}{path}"
                reply = await client.send("POST", url, [("content-type", "application/json")], body)
                await reply.read(10_000)
                return reply.status
        finally:
            await client.close()
            await address.close()
            await site_planes.close()

    return asyncio.run(main())


@pytest.mark.parametrize("scripted", [True, False])
def test_telemetry_that_nobody_takes_is_a_note_and_no_error(tmp_path: Path, scripted: bool) -> None:
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


def test_a_call_that_never_reached_the_agent_was_not_asked_for(tmp_path: Path) -> None:
    calm, hollow = FakeContext(), FakeContext([Injection("llm", "*", "empty_choices")])
    assert [post(context, tmp_path, "/chat/completions", ASKED) for context in (calm, hollow)] == [200, 200]
    assert calls_asked_for(calm) == [("search", "declared")]
    assert calls_asked_for(hollow) == []
