from __future__ import annotations

import asyncio
import socket
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from aiohttp import web

from agent_http_servers import TRIAL, Plain, recorded, web_server
from golden_words import Golden
from holdfast.agents.http import reset as http_reset
from holdfast.agents.http.agent import HttpAgent
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.spec import AgentSpec
from refused import refused


async def reset(url: str, root: Path = Path(), **settings: Any) -> None:
    agent = await HttpAgent.open(AgentSpec(endpoint=url, **settings), limit=1, root=root)
    try:
        await agent.reset(Plain())
    finally:
        await agent.close()


def call(root: Path, source: str, function: str = "resetting:clear", **settings: Any) -> None:
    (root / "resetting.py").write_text(source)
    asyncio.run(reset("http://127.0.0.1:9/", root, reset_function=function, **settings))


@pytest.mark.parametrize(
    ("endpoint", "path"), [("/reset", "/reset"), ("reset", "/reset"), ("{origin}/admin/reset?all=1", "/admin/reset")]
)
def test_reset_endpoint_is_posted_absolute_or_relative(endpoint: str, path: str) -> None:
    async def go() -> list[dict[str, Any]]:
        with recorded() as (seen, handler):
            async with web_server(handler) as url:
                target = endpoint.replace("{origin}", url.removesuffix("/ask"))
                await reset(url, reset_endpoint=target, headers={"X-Key": "k"})
            return seen

    (request,) = asyncio.run(go())
    assert (request["method"], request["path"], request["body"]) == ("POST", path, "")
    assert request["headers"]["X-Key"] == "k"


def test_reset_on_another_server_does_not_see_the_agents_headers() -> None:
    async def go() -> list[dict[str, Any]]:
        with recorded() as (seen, handler):
            async with web_server(handler) as url:
                await reset("http://agent.invalid/ask", reset_endpoint=url, headers={"X-Key": "k"})
            return seen

    (request,) = asyncio.run(go())
    assert "X-Key" not in request["headers"]


@pytest.mark.parametrize("status", [400, 404, 500])
def test_reset_answered_with_400_or_more_is_a_harness_error(status: int) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=status, text="cannot clear")

    async def go() -> None:
        async with web_server(handler) as url:
            await reset(url, reset_endpoint="/reset")

    with pytest.raises(HarnessError, match=f"HTTP {status} cannot clear"):
        asyncio.run(go())


def test_reset_that_takes_too_long_is_a_harness_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_reset, "RESET_S", 0.2)

    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response()

    async def go() -> None:
        async with web_server(handler) as url:
            await reset(url, reset_endpoint="/reset")

    with refused("reset-failed"):
        asyncio.run(go())


def test_reset_that_cannot_be_reached_is_a_harness_error() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/reset"
        with pytest.raises(HarnessError, match="connection refused"):
            asyncio.run(reset("http://127.0.0.1:9/", reset_endpoint=url))


def test_reset_endpoint_that_is_not_a_url_is_a_configuration_error() -> None:
    with pytest.raises(AgentUnavailable, match="reset_endpoint") as caught:
        asyncio.run(reset("http://127.0.0.1:9/", reset_endpoint="mailto:x"))
    assert caught.value.config


def test_no_reset_configured_does_nothing() -> None:
    asyncio.run(reset("http://127.0.0.1:9/"))


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_reset_function_runs_in_a_child_in_the_specs_folder(tmp_path: Path, kind: str) -> None:
    source = f"import os\n{kind} clear(): open('done', 'w').write(f\"{{os.getpid()}} {{os.environ['WHO']}}\")\n"
    call(tmp_path, source, env={"WHO": "me"})
    pid, who = (tmp_path / "done").read_text().split()
    assert who == "me"
    assert not Path(f"/proc/{pid}").exists()


def test_reset_function_of_an_object_in_a_module(tmp_path: Path) -> None:
    call(tmp_path, "class Db:\n    @staticmethod\n    def clear(): open('done', 'w')\n", "resetting:Db.clear")
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def clear(): raise KeyError('table')", "KeyError: 'table'"),
        ("", "clear"),
        ("import no_such_module_here", "no_such_module_here"),
        ("import os\ndef clear(): os._exit(7)", "exit 7: it printed nothing"),
    ],
)
def test_reset_function_that_fails_is_a_harness_error(tmp_path: Path, source: str, why: str) -> None:
    with pytest.raises(HarnessError, match="resetting:clear") as caught:
        call(tmp_path, source)
    assert why in str(caught.value)


def test_reset_function_over_its_time_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(http_reset, "RESET_S", 0.5)
    source = "import os, time\ndef clear():\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(60)\n"
    with refused("reset-failed") as told:
        call(tmp_path, source)
    golden(str(told.value))
    pid = (tmp_path / "pid").read_text()
    assert not Path(f"/proc/{pid}").exists()


def test_what_a_reset_function_leaves_running_is_ended(tmp_path: Path) -> None:
    source = "import subprocess\ndef clear(): open('pid', 'w').write(str(subprocess.Popen(['sleep', '60']).pid))\n"
    call(tmp_path, source)
    state = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    deadline = time.monotonic() + 2
    while state.exists() and state.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not state.exists() or state.read_text().split()[2] == "Z"


class OneAtATime(BaseHTTPRequestHandler):
    """A server that keeps a connection and meanwhile serves nobody else."""

    protocol_version = "HTTP/1.1"
    timeout = 5

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-length", "15")
        self.end_headers()
        self.wfile.write(b'{"output":"ok"}')

    def log_message(self, *_: object) -> None:
        pass


def test_reset_and_question_do_not_block_a_server_that_has_one_connection_at_a_time() -> None:
    async def go(url: str) -> list[str]:
        agent = await HttpAgent.open(AgentSpec(endpoint=url, reset_endpoint="/reset"), limit=1)
        said = []
        for _ in range(3):
            answer = await agent.run(TRIAL.task, Plain())
            said.append(answer.turns[0].text or "")
        await agent.close()
        return said

    with HTTPServer(("127.0.0.1", 0), OneAtATime) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        began = time.monotonic()
        assert asyncio.run(go(f"http://127.0.0.1:{server.server_port}/ask")) == ["ok"] * 3
        assert time.monotonic() - began < OneAtATime.timeout
        server.shutdown()
