"""Temporary planes for the probes, with a scripted model, a local server and an MCP server behind them."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import Struct

from holdfast.execute.context import LiveContext
from holdfast.http1.server import Exchange, serve
from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from holdfast.processes import scratch

MODEL_REPLY = "one two three four five six"
"""The scripted model's only reply."""
SERVER_REPLY = "from the server"
"""The local server's only response."""
LIMIT_S = 15.0
"""Time limit for one route, long enough that a busy machine does not look broken."""
MCP_SERVER = Path(__file__).with_name("mcp_server.py")
_SCRIPT = f'replies: [{{text: "{MODEL_REPLY}"}}]\n'


class Unmet(Exception):
    """A probe's call did not meet its fault, or an untouched call did not pass."""

    def __init__(self, why: str, fix: str = "", *, code: str = "fault-not-met") -> None:
        super().__init__(why)
        self.fix = fix
        self.code = code


class Absent(Exception):
    """The machine has nothing to try on this route."""


class ProbeSite(Struct, frozen=True):
    """The planes and the servers behind them."""

    site_planes: SitePlanes
    plain: str
    """A server that answers."""
    secure: str
    """An address where no server listens, so that only a fault can answer."""
    environ: Mapping[str, str]

    @asynccontextmanager
    async def open_trial(self, name: str, *injections: Injection) -> AsyncIterator[tuple[dict[str, str], LiveContext]]:
        """The environment an agent would get, and the trial that its calls belong to."""
        context = build_context(name, *injections)
        address = await self.site_planes.open_address()
        try:
            with address.serve_trial(context):
                yield {**self.environ, **address.environ}, context
        finally:
            await address.close()


def build_context(name: str, *injections: Injection) -> LiveContext:
    """Return the context of a trial with these faults and without an agent."""
    return LiveContext(Trial(f"doctor {name}", "contract", Scenario(name, injections), Task((name,))))


@asynccontextmanager
async def open_site(environ: Mapping[str, str]) -> AsyncIterator[ProbeSite]:
    """Open the site and remove all of it at the end."""
    with scratch.open_folder("doctor") as root, socket.socket() as nobody:
        (root / "model.yaml").write_text(_SCRIPT, encoding="utf-8")
        # Bound but never listening: a client that bypasses the proxy is refused.
        nobody.bind(("127.0.0.1", 0))
        # The address without a server proves that a fault itself answered: a real reply cannot come from there.
        server = await serve(_answer)
        try:
            plain = f"http://127.0.0.1:{server.port}/"
            secure = f"https://localhost:{nobody.getsockname()[1]}/"
            site_planes = SitePlanes(_build_settings(root, environ, (f"{plain}*", f"{secure}*")))
            try:
                yield ProbeSite(site_planes, plain, secure, environ)
            finally:
                await site_planes.close()
        finally:
            await server.close()


def _build_settings(root: Path, environ: Mapping[str, str], urls: Sequence[str]) -> PlaneSettings:
    server = {"command": sys.executable, "args": ["-I", "-S", str(MCP_SERVER)]}
    return PlaneSettings(
        AgentSpec(type="command", command="true", mcp_config={"mcpServers": {"doctor": server}}),
        root,
        environ,
        {"*": ModelSpec(provider="script", script="model.yaml")},
        (Scenario("doctor", tuple([Injection("http", url, "down") for url in urls])),),
    )


async def _answer(exchange: Exchange) -> None:
    await exchange.respond(200, (("content-type", "text/plain"),), SERVER_REPLY.encode())


@asynccontextmanager
async def start_program(argv: Sequence[str], environ: Mapping[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program in its own session and kill the complete session at the end."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(environ), start_new_session=True
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        # Reads the rest of the pipes, which closes them.
        await process.communicate()


async def read_output(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[str, str]:
    """Return a program's stdout and stderr."""
    async with start_program(argv, environ) as process:
        out, err = await process.communicate()
        return out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
