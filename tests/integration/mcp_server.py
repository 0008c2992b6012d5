"""A small MCP server of the Python SDK: over stdio, or `mcp_server.py http [json]` on a port that it prints."""

import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, ConfigDict

server = MCPServer("shop")
done: list[str] = []


@server.tool()
def price(item: str) -> dict[str, float | str]:
    """The price of an item."""
    return {"item": item, "price": 189.3, "currency": "EUR"}


@server.tool()
def search(query: str, limit: int = 3) -> list[str]:
    """Finds items."""
    return [f"{query} {n}" for n in range(limit)]


class Stock(BaseModel):
    """What is there of an item."""

    model_config = ConfigDict(extra="forbid")
    item: str
    places: list[str]
    count: int


@server.tool()
def stock(item: str) -> Stock:
    """How much there is of an item."""
    return Stock(item=item, places=["cellar", "attic"], count=12)


@server.tool(structured_output=False)
def describe(item: str) -> str:
    """Says what an item is."""
    return f"The item {item} is a fine thing to have."


@server.tool(structured_output=False)
def book(item: str) -> str:
    """Books an item."""
    done.append(item)
    return f"booked {len(done)}"


@server.tool()
def broken() -> str:
    """Always fails."""
    raise ToolError("out of stock")


@server.tool(structured_output=False)
def die() -> str:
    """Ends the server."""
    os._exit(7)


@server.resource("shop://terms")
def terms() -> str:
    """The terms of trade."""
    return "All sales are final. Ask before you buy."


@server.prompt()
def greet(name: str) -> str:
    """A greeting."""
    return f"Say hello to {name} in one line."


def over_http(*, json_response: bool) -> None:
    """Serves on a free port until it is ended."""
    import socket

    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = server.streamable_http_app(json_response=json_response)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        over_http(json_response="json" in sys.argv)
    else:
        server.run("stdio")
