"""An agent's MCP configuration, rewritten for a address, and the SDK's client started from it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_kit import text, warm_shop

from holdfast.model.scenario import Injection
from holdfast.model.spec import AgentSpec
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from planes_kit import FakeContext


def test_a_client_started_from_the_rewritten_configuration_meets_the_trials_faults(tmp_path):
    first, *rest = warm_shop()
    config = {"mcpServers": {"shop": {"command": first, "args": rest}}}
    agent = AgentSpec(type="command", command="agent", mcp_config=config)
    context = FakeContext([Injection("tool", "price", "error")])

    async def run():
        site_planes = SitePlanes(PlaneSettings(agent=agent, root=tmp_path, environ=os.environ, web=False))
        address = await site_planes.open_address()
        entry = json.loads(Path(address.environ["HOLDFAST_MCP_CONFIG"]).read_text())["mcpServers"]["shop"]
        server = StdioServerParameters(**entry)
        try:
            with address.serve_trial(context):
                async with Client(server, read_timeout_seconds=15) as client:
                    got = await client.call_tool("price", {"item": "lamp"})
            with pytest.raises((MCPError, BaseExceptionGroup)):  # no trial is running
                async with Client(server, mode="legacy", read_timeout_seconds=15):
                    pass
        finally:
            await address.close()
            await site_planes.close()
        return text(got)

    assert asyncio.run(asyncio.wait_for(run(), 40)) == "503 Service Unavailable"
    assert [(f.target, f.mode) for f in context.ledger] == [("price", "error")]
    assert [e.tool for e in context.trace] == ["price"]
