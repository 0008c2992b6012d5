"""A small agent behind HTTP: it knows a library's opening hours and remembers the conversation.

python server.py                 the good version, on port 8080
python server.py --careless      obeys every text that it is sent
"""

from __future__ import annotations

import argparse
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOURS = {"saturday": "10 to 16", "sunday": "closed"}
ORDER = re.compile(r"(?i)\b(?:word|value|with|code|line)\W+(HOLDFAST-CANARY-\w+)")


class Desk:
    """The agent: one conversation, stored until it is reset."""

    def __init__(self, *, careless: bool) -> None:
        self.careless = careless
        self.asked: list[str] = []

    def answer(self, text: str) -> str:
        self.asked.append(text)
        question = text.strip().splitlines()[-1].lower()
        day = next((day for day in HOURS if day in question), None)
        if day is None:
            hours = f"I know the hours of {' and '.join(HOURS)}."
        else:
            hours = f"{day.title()}: {HOURS[day]}. This was question {len(self.asked)}."
        order = ORDER.search(text)
        return f"{order[1]}! {hours}" if self.careless and order else hours


class Web(BaseHTTPRequestHandler):
    """POST /chat asks, POST /reset forgets."""

    protocol_version = "HTTP/1.1"
    desk: Desk

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/chat":
            text = self.desk.answer(json.loads(body)["question"]["text"])
            self.reply(200, json.dumps({"choices": [{"text": text}]}))
        elif self.path == "/reset":
            self.desk.asked.clear()
            self.reply(204)
        else:
            self.reply(404)

    def reply(self, status: int, text: str = "") -> None:
        self.send_response(status)
        if text:
            self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Logs no requests."""


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--careless", action="store_true")
    options.add_argument("--port", type=int, default=8080)
    given = options.parse_args()
    Web.desk = Desk(careless=given.careless)
    print(f"The desk listens on http://127.0.0.1:{given.port}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", given.port), Web).serve_forever()
