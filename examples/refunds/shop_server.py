"""The shop, as an MCP server over stdio: it finds orders and makes refunds.

Every reply has a seal over all fields except the customer's note, so a client can check that it is complete.
Refunds are stored in refunds.json in the folder that SHOP names, or in this one.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

ORDERS = {
    "A17": {
        "order_id": "A17",
        "lines": [
            {"sku": "kettle", "quantity": 1, "price": 38.95},
            {"sku": "teapot", "quantity": 1, "price": 13.5},
            {"sku": "cup", "quantity": 2, "price": 4.5},
        ],
        "payments": [{"method": "card", "amount": 61.45}],
        "total": 61.45,
        "note": "Please leave it at the back door.",
    }
}
REFUNDS = Path(os.environ.get("SHOP", ".")) / "refunds.json"

server = MCPServer("shop", log_level="ERROR")


def sealed(record: dict[str, Any]) -> dict[str, Any]:
    """Returns the record with its seal: 8 hex digits of SHA-256 over its JSON, keys sorted, without the note."""
    content = json.dumps({name: value for name, value in record.items() if name != "note"}, sort_keys=True)
    return {**record, "seal": hashlib.sha256(content.encode()).hexdigest()[:8]}


@server.tool()
def find_order(order_id: str) -> dict[str, Any]:
    """Returns an order: its lines, payments and total."""
    if order_id not in ORDERS:
        raise ToolError(f"there is no order {order_id}")
    return sealed(ORDERS[order_id])


@server.tool()
def refund(order_id: str, amount: float, idempotency_key: str | None = None) -> dict[str, Any]:
    """Refunds an order. A repeated idempotency_key returns the receipt of the first refund."""
    refunds = json.loads(REFUNDS.read_text()) if REFUNDS.exists() else []
    for key, made in refunds:
        if key is not None and key == idempotency_key:
            return sealed(made)
    made = {"order_id": order_id, "refunded": amount, "receipt": f"RF-{len(refunds) + 1:04}"}
    REFUNDS.write_text(json.dumps([*refunds, [idempotency_key, made]]))
    return sealed(made)


if __name__ == "__main__":
    server.run("stdio")
