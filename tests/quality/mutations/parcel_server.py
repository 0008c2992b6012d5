"""An agent behind HTTP that breaks on a large body; with `sound` as its argument it refuses one."""

import http.server
import json
import os
import sys


class Agent(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if length > 10_000:
            return self.reply(413 if "sound" in sys.argv else 500, {})
        try:
            json.loads(body)
        except ValueError:
            return self.reply(400, {})
        return self.reply(200, {"output": "Order A-1234 was shipped to Oslo. Source: ledger."})

    def reply(self, status: int, value: dict[str, str]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
