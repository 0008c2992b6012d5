"""Shared code: where the shop is, its tools in the model's format, and tool calls assembled from a stream."""

import json
import os
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters


def shop() -> StdioServerParameters:
    """Returns how to start the shop's server, from the MCP configuration file."""
    config = json.loads(Path(os.environ.get("HOLDFAST_MCP_CONFIG", "mcp.json")).read_text())
    server = config["mcpServers"]["shop"]
    env = {**os.environ, **server.get("env", {})}
    return StdioServerParameters(command=server["command"], args=server["args"], env=env)


async def declared(client: Client) -> list[dict[str, Any]]:
    """Returns the shop's tools in the format of Chat Completions."""
    tools = (await client.list_tools()).tools
    described = [{"name": t.name, "description": t.description, "parameters": t.input_schema} for t in tools]
    return [{"type": "function", "function": one} for one in described]


def put_together(calls: list[dict[str, Any]], parts: list[Any] | None) -> None:
    """Adds the pieces of tool calls in one chunk of a stream."""
    for part in parts or []:
        if part.id:
            calls.append({"id": part.id, "type": "function", "function": {"name": "", "arguments": ""}})
        calls[-1]["function"]["name"] += part.function.name or ""
        calls[-1]["function"]["arguments"] += part.function.arguments or ""


def message(text: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the model's message for the conversation."""
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
