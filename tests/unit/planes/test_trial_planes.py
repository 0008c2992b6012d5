"""The planes of one trial, when it ends."""

import asyncio
import json

from holdfast.model.model_spec import ModelSpec
from holdfast.model.spec import AgentSpec
from holdfast.planes.mcp.trial_state import McpTrialState
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from planes_kit import FakeContext

SCRIPT = """
replies:
  - tool_calls: [{name: price, arguments: {item: lamp}}]
"""


def test_a_tool_of_mcp_is_not_reported_as_declared_and_never_answered(tmp_path):
    (tmp_path / "model.yaml").write_text(SCRIPT)
    settings = PlaneSettings(
        AgentSpec(type="command", command="x"), tmp_path, {}, {"*": ModelSpec(script="model.yaml")}, web=False
    )
    context = FakeContext()
    asked = json.dumps(
        {
            "model": "m",
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function": {"name": "price", "parameters": {}}}],
        }
    ).encode()

    async def main():
        site_planes = SitePlanes(settings)
        address = await site_planes.open_address()
        with address.serve_trial(context):
            site_planes.mcp._visits[context] = visit = McpTrialState()
            visit.add_tool("price")
            reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
            writer.write(
                f"POST /{address.token}/openai/v1/chat/completions HTTP/1.1\r\nconnection: close\r\n"
                f"content-length: {len(asked)}\r\n\r\n".encode()
                + asked
            )
            assert b'"price"' in await reader.read()
            writer.close()
        await address.close()
        await site_planes.close()

    asyncio.run(main())
    assert context.troubles == []
    assert [event.event_type for event in context.trace] == ["llm_call"]
