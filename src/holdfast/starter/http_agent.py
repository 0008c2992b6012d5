"""A tiny agent to start from: it answers over HTTP, at the port in its environment. Replace it with your own."""

import json
import os
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STOCK = {"anvil": 12, "rocket": 3}


def answer(message: str) -> str:
    """The agent: it looks up what is in stock, and repeats everything it was sent. To fix it, return only `stock`."""
    items = [item for item in STOCK if re.search(item, message, re.IGNORECASE)]
    stock = ", ".join(f"{STOCK[item]} {item}s" for item in items) or "I can look up anvils and rockets."
    return f"{stock} (You wrote: {message})"


class Chat(BaseHTTPRequestHandler):
    """POST /chat {"message": …} gives {"reply": …}."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = json.dumps({"reply": answer(body["message"])}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:
        """Stays silent: Holdfast shows what the agent prints."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8000"))), Chat).serve_forever()
