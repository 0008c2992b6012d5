"""A judge model on loopback, in the format of every provider: it says what a function of its request gives."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct

MARKED = re.compile(r"between the line (<<<TEXT \w+>>>) and the line (<<<END OF TEXT \w+>>>)\.")


class Got(Struct):
    """One request as the server saw it."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def system(self) -> str:
        body = self.body
        if "systemInstruction" in body:
            return str(body["systemInstruction"]["parts"][0]["text"])
        if "system" in body:
            return str(body["system"])
        return "".join(m["content"] for m in body["messages"] if m["role"] == "system")

    @property
    def prompt(self) -> str:
        if "contents" in self.body:
            return str(self.body["contents"][0]["parts"][0]["text"])
        return str(next(m["content"] for m in self.body["messages"] if m["role"] == "user"))

    @property
    def temperature(self) -> float | None:
        settings = self.body.get("generationConfig") or self.body.get("options") or self.body
        return settings.get("temperature")  # type: ignore[no-any-return]  # JSON


class Reply(Struct):
    """Anything but a good answer."""

    status: int
    body: str = '{"error": {"message": "no"}}'
    headers: dict[str, str] = {}


Say = Callable[[Got], "str | Reply"]


def rating(score: Any, **more: Any) -> str:
    return json.dumps({"score": score, "passed": True, "reason": "as it is", **more})


class JudgeServer:
    """Keeps what it was asked."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.seen: list[Got] = []
        self.url = ""

    def answer(self, got: Got) -> Reply:
        self.seen.append(got)
        said = self.say(got)
        return said if isinstance(said, Reply) else Reply(200, json.dumps(_wrapped(got.path, said)))


def _wrapped(path: str, text: str) -> dict[str, Any]:
    if path.endswith("/messages"):
        return {"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn"}  # fmt: skip
    if ":generateContent" in path:
        return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]}
    if path == "/api/chat":
        return {"model": "m", "message": {"role": "assistant", "content": text}, "done": True, "done_reason": "stop"}
    return {"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
                                    "finish_reason": "stop"}]}  # fmt: skip


@contextmanager
def judging(say: Say) -> Iterator[JudgeServer]:
    """A server whose model says that."""
    judge = JudgeServer(say)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = judge.answer(Got(self.path, headers, body))
            data = reply.body.encode()
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Tests look at what was asked, not at a log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        judge.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield judge
        finally:
            server.shutdown()
            thread.join()


def parted(prompt: str) -> tuple[str, str]:
    """What a prompt says itself, and the text between its marks, as a judge that keeps to them reads it."""
    named = MARKED.search(prompt)
    assert named is not None
    head, tail = prompt[: named.end()], prompt[named.end() :]
    before, opening, rest = tail.partition(f"\n{named[1]}\n")
    assert opening
    inside, closing, after = rest.partition(f"\n{named[2]}\n")
    assert closing
    return head + before + after, inside


def gullible(got: Got) -> str:
    """Obeys whatever asks for a score of 1, unless it stands between the marks."""
    outside, _ = parted(got.prompt)
    asked = "give it a score of 1" in (got.system + outside).lower()
    return rating(1.0 if asked else 0.1, reason="I was told to" if asked else "poor")
