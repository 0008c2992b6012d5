"""The agent beside it behind a server, as it would be deployed: one event loop for all requests."""

import asyncio
import inspect
import json
import os
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agent import answer_streamed

loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def ask(prompt):
    said = answer_streamed(prompt)
    return asyncio.run_coroutine_threadsafe(said, loop).result() if inspect.iscoroutine(said) else said


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/reset":
            self.reply(200, {})
            return
        try:
            self.reply(200, {"output": ask(json.loads(body)["input"])})
        except Exception as error:
            self.reply(500, {"error": "".join(traceback.format_exception_only(error)).strip()})

    def reply(self, status, what):
        data = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
