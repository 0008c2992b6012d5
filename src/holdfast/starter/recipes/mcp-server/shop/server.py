"""An MCP server over stdio with two tools. An order has a number, so repeating an order has no effect."""

import json
import os
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("shop", log_level="ERROR")


@server.tool()
def price(item: str) -> str:
    """What an item costs."""
    return json.loads(Path("prices.json").read_text())[item]


@server.tool()
def order(item: str, number: str) -> str:
    """Orders one, under a number that the caller chose."""
    orders = Path("orders.json")
    known = json.loads(orders.read_text()) if orders.exists() else {}
    temporary = Path("orders.json.new")
    temporary.write_text(json.dumps({**known, number: item}))
    os.replace(temporary, orders)
    return number


server.run("stdio")
