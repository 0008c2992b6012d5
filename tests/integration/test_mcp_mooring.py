"""An agent's MCP configuration, rewritten for a mooring, and the SDK's client started from it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_kit import SHOP, text

from holdfast.model.spec import AgentSpec, Injection
from holdfast.planes.harbour import Chart, Harbour
from planes_kit import FakeTrip


def test_a_client_started_from_the_rewritten_configuration_meets_the_trials_faults(tmp_path):
    config = {"mcpServers": {"shop": {"command": SHOP[0], "args": [SHOP[1]]}}}
    agent = AgentSpec(type="command", command="agent", mcp_config=config)
    trip = FakeTrip([Injection("tool", "price", "error")])

    async def run():
        harbour = Harbour(Chart(agent=agent, root=tmp_path, environ=os.environ, web=False))
        mooring = await harbour.moor()
        entry = json.loads(Path(mooring.environ["HOLDFAST_MCP_CONFIG"]).read_text())["mcpServers"]["shop"]
        server = StdioServerParameters(**entry)
        try:
            with mooring.carry(trip):
                async with Client(server, read_timeout_seconds=15) as client:
                    got = await client.call_tool("price", {"item": "lamp"})
            with pytest.raises((MCPError, BaseExceptionGroup)):  # no trial is under way
                async with Client(server, mode="legacy", read_timeout_seconds=15):
                    pass
        finally:
            await mooring.close()
            await harbour.close()
        return text(got)

    assert asyncio.run(asyncio.wait_for(run(), 40)) == "503 Service Unavailable"
    assert [(f.target, f.mode) for f in trip.ledger] == [("price", "error")]
    assert [e.tool for e in trip.trace] == ["price"]
