"""An agent behind https is checked against the system's trust, or what SSL_CERT_FILE names."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

import pytest

from agent_http_servers import Plain, opened, read_request
from holdfast.model.observation import Answer
from holdfast.model.task import Task
from refused import refused
from tls_server import REPLY, server

__all__ = ["server"]  # a fixture


async def ask_twice(context: ssl.SSLContext) -> tuple[list[Answer], int]:
    """Two answers of a server behind TLS, and over how many connections they came."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await read_request(reader):
                writer.write(REPLY)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}/ask"
    try:
        async with opened(url) as agent:
            return [await agent.run(Task(("hi",)), Plain()) for _ in range(2)], connections
    finally:
        listening.close()


def test_a_server_that_the_user_trusts_is_asked_over_a_kept_connection(
    server: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "trust.pem"))
    answers, connections = asyncio.run(ask_twice(server))
    assert [answer.turns[0].text for answer in answers] == ["ok", "ok"]
    assert connections == 1


def test_a_certificate_that_nobody_trusts_is_unavailable_and_says_what_to_set(server: ssl.SSLContext) -> None:
    with refused("agent-unreachable") as caught:
        asyncio.run(ask_twice(server))
    assert "SSL_CERT_FILE" in caught.value.hint
