"""Changed requests to servers that Holdfast started, and to servers behind TLS."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from launch_kit import context_of, launched, python

from agent_http_servers import Plain, opened
from changed_request_kit import PROMPT, change_of, task_of
from holdfast.model.observation import Turn
from holdfast.model.task import RequestChange, Task
from refused import refused
from tls_server import REPLY, server

__all__ = ["server"]  # a fixture

WEAK = """
import http.server, json, os

class Agent(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if len(data) > 100_000: os._exit(9)
        body = json.dumps({"output": "fine"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass

http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
"""


@pytest.mark.parametrize("isolation", ["fresh", "worker"])
@pytest.mark.parametrize("copies", [1, 3])
def test_an_agent_that_a_request_ends_has_crashed_and_the_next_trial_meets_another(
    tmp_path: Path, isolation: str, copies: int
) -> None:
    change = RequestChange("resource_exhaustion", "long_string", body="long_string", size=500_000, copies=copies)

    async def go() -> list[Turn]:
        settings = {"endpoint": "http://127.0.0.1:{port}/", "command": python(tmp_path, WEAK), "isolation": isolation}
        async with launched(tmp_path, **settings) as agent:
            tasks = (Task((PROMPT,)), task_of(change), Task((PROMPT,)))
            return [(await agent.run(task, context_of(PROMPT))).turns[0] for task in tasks]

    before, hit, after = asyncio.run(go())
    assert (before.text, after.text) == ("fine", "fine")
    assert hit.ending == "crashed"
    assert "9" in hit.detail


async def ask_securely(context: ssl.SSLContext, change: RequestChange) -> tuple[Turn, bytes]:
    """What a server behind TLS was sent, and the turn that came of it."""
    got: asyncio.Queue[bytes] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.put_nowait(await reader.readuntil(b"parcel?"))
        writer.write(REPLY)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        async with opened(f"https://127.0.0.1:{port}/ask", timeout_ms=5_000) as agent:
            answer = await agent.run(task_of(change), Plain())
    return answer.turns[0], await got.get()


def test_a_changed_request_goes_through_tls(
    server: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "trust.pem"))
    turn, data = asyncio.run(ask_securely(server, change_of("http_header_injection", "crlf")))
    assert turn.text == "ok"
    assert b"\r\nX-Role: admin\r\n" in data


def test_a_certificate_that_nobody_trusts_is_not_an_ending(server: ssl.SSLContext) -> None:
    with refused("agent-unreachable"):
        asyncio.run(ask_securely(server, RequestChange("x")))
