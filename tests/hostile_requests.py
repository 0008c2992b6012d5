"""The planes of one trial behind their address, for tests that send them bytes which no client would send."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from holdfast.planes.trial_address import TrialAddress
from planes_kit import FakeContext

SCRIPT = "replies:\n  - text: 'you said {{ prompt }}'\n"


class Planes:
    """All planes of a trial, in a thread of their own. Nothing leaves this machine: only addresses are resolved.

    `upstream` is the port of a server that the spec names, `standing` one where the agent finds the host `mail`.
    """

    def __init__(self, folder: Path, injections: Sequence[Injection], upstream: int) -> None:
        (folder / "model.yaml").write_text(SCRIPT)
        servers = {"shop": {"type": "http", "url": f"http://127.0.0.1:{upstream}/mcp"}}
        self._settings = PlaneSettings(
            AgentSpec(type="command", command="x", mcp_config={"mcpServers": servers}),
            folder,
            {},
            {"*": ModelSpec(script="model.yaml")},
            (Scenario("weather", tuple(injections)),),
            read=(f"http://127.0.0.1:{upstream}/*",),
        )
        self.context = FakeContext(injections)
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._ready: Future[tuple[TrialAddress, int]] = Future()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._thread.start()
        self.address, self.standing = self._ready.result(10)

    async def _serve(self) -> None:
        with patch("holdfast.planes.egress_policy._resolve_host", _numeric), socket.socket() as stood:
            stood.bind(("127.0.0.1", 0))
            site_planes = SitePlanes(self._settings)
            address = await site_planes.open_address()
            await address.serve_as_host(stood, "mail", 80)
            with address.serve_trial(self.context):
                self._ready.set_result((address, stood.getsockname()[1]))
                await self._over.wait()
            await address.close()
            await site_planes.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)
        self._loop.close()

    @property
    def broken(self) -> list[str]:
        """What is held to be a bug of ours."""
        return [trouble for trouble in self.context.troubles if "a plane failed" in trouble]

    @property
    def answers(self) -> bool:
        """Whether the trial goes on: its model answers."""
        body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
        return b"you said hi" in self.own(b"openai/v1/chat/completions", b"content-length: %d\r\n" % len(body), body)

    def proxied(self, target: bytes, fields: bytes = b"", body: bytes = b"", method: bytes = b"GET") -> bytes:
        """A request to the proxy, with its password."""
        word = base64.b64encode(f"holdfast:{self.address.token}".encode())
        head = b"%b %b HTTP/1.1\r\nproxy-authorization: Basic %b\r\nconnection: close\r\n%b\r\n"
        return send(self.address.port, head % (method, target, word, fields) + body)

    def own(self, path: bytes, fields: bytes = b"", body: bytes = b"", method: bytes = b"POST") -> bytes:
        """A request to one of our own paths: `openai/v1/...`."""
        head = b"%b /%b/%b HTTP/1.1\r\nconnection: close\r\n%b\r\n"
        return send(self.address.port, head % (method, self.address.token.encode(), path, fields) + body)

    def stood(self, target: bytes, fields: bytes = b"", body: bytes = b"", method: bytes = b"GET") -> bytes:
        """A request to a host that we stand for."""
        return send(self.standing, b"%b %b HTTP/1.1\r\nconnection: close\r\n%b\r\n" % (method, target, fields) + body)


@contextmanager
def planes(folder: Path, injections: Sequence[Injection] = (), upstream: int = 9) -> Iterator[Planes]:
    """The planes while the body runs."""
    opened = Planes(folder, injections, upstream)
    try:
        yield opened
    finally:
        opened.close()


def send(port: int, data: bytes) -> bytes:
    """What comes back for these bytes, which are all that is sent."""
    with socket.create_connection(("127.0.0.1", port), 5) as line:
        got = b""
        try:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            while piece := line.recv(65536):
                got += piece
        except OSError:  # it was reset, or left waiting
            return got
        return got


def status(reply: bytes) -> int:
    """Of a reply; 0 if there is none."""
    first = reply.split(b"\r\n", 1)[0].split()
    return int(first[1]) if len(first) > 1 else 0


async def _numeric(host: str, port: int) -> list[str]:
    """What the resolver makes of a name before it asks anybody."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
