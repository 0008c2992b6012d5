"""The planes of one trial, when it ends."""

import asyncio
import json

from holdfast.model.spec import AgentSpec, ModelSpec
from holdfast.planes.harbour import Chart, Harbour
from holdfast.planes.mcp.visit import Visit
from planes_kit import FakeTrip

SCRIPT = """
replies:
  - tool_calls: [{name: price, arguments: {item: lamp}}]
"""


def test_a_tool_of_mcp_is_not_told_as_declared_and_never_answered(tmp_path):
    (tmp_path / "model.yaml").write_text(SCRIPT)
    chart = Chart(
        AgentSpec(type="command", command="x"), tmp_path, {}, {"*": ModelSpec(script="model.yaml")}, web=False
    )
    trip = FakeTrip()
    asked = json.dumps(
        {
            "model": "m",
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function": {"name": "price", "parameters": {}}}],
        }
    ).encode()

    async def main():
        harbour = Harbour(chart)
        mooring = await harbour.moor()
        with mooring.carry(trip):
            harbour.mcp._visits[trip] = visit = Visit()
            visit.knows("price")
            reader, writer = await asyncio.open_connection("127.0.0.1", mooring.port)
            writer.write(
                f"POST /{mooring.token}/openai/v1/chat/completions HTTP/1.1\r\nconnection: close\r\n"
                f"content-length: {len(asked)}\r\n\r\n".encode()
                + asked
            )
            assert b'"price"' in await reader.read()
            writer.close()
        await mooring.close()
        await harbour.close()

    asyncio.run(main())
    assert trip.troubles == []
    assert [event.event_type for event in trip.trace] == ["llm_call"]
