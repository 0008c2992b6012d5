"""The upstream of the gateway's benchmark: as cheap as a server can be, for it is not what is measured."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from httptools import HttpRequestParser

REPLY = json.dumps(
    {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Revenue was up, according to the report. " * 5},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 40, "total_tokens": 52},
    }
).encode()
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(REPLY), REPLY)
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    told = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(told).encode() + b"\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


EVENTS = [chunk(event({"content": f"word{n:04d} "})) for n in range(1000)]
LAST = chunk(event({}, "stop") + b"data: [DONE]\n\n") + b"0\r\n\r\n"


class Server(asyncio.Protocol):
    """Answers one request after another."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._parser = HttpRequestParser(self)
        self._body = b""
        self._playing: set[asyncio.Task[None]] = set()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        body, self._body = self._body, b""
        if b'"stream"' not in body:
            self._transport.write(WHOLE)
        else:
            asked = json.loads(body)
            playing = asyncio.get_running_loop().create_task(self._play(asked["chunks"], asked["pause"]))
            self._playing.add(playing)
            playing.add_done_callback(self._playing.discard)

    async def _play(self, chunks: int, pause: float) -> None:
        self._transport.write(STREAM)
        for told in EVENTS[:chunks]:
            self._transport.write(told)
            await asyncio.sleep(pause)
        self._transport.write(LAST)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
