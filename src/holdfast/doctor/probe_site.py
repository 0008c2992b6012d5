"""A throwaway planes: a scripted model, a local server and an MCP server, all behind planes of their own."""

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

SAID = "one two three four five six"
"""What the scripted model always says."""
SERVED = "from the server"
"""What the local server always answers."""
LIMIT_S = 15.0
"""For one route: a machine that is busy must not look broken."""
MCP_SERVER = Path(__file__).with_name("mcp_server.py")
_SCRIPT = f'replies: [{{text: "{SAID}"}}]\n'


class Unmet(Exception):
    """A call was made, and its fault was not met as it should be."""

    def __init__(self, why: str, fix: str = "") -> None:
        super().__init__(why)
        self.fix = fix


class Absent(Exception):
    """There is nothing to try here."""


class ProbeSite(Struct, frozen=True):
    """The planes and what is behind it."""

    site_planes: SitePlanes
    plain: str
    """A server that answers."""
    secure: str
    """An address at which nobody answers: only a fault can."""
    environ: Mapping[str, str]

    @asynccontextmanager
    async def trial(self, name: str, *injections: Injection) -> AsyncIterator[tuple[dict[str, str], LiveContext]]:
        """The variables that an agent would be started with, and the trial that its calls are of."""
        context = trip_of(name, *injections)
        address = await self.site_planes.open_address()
        try:
            with address.serving(context):
                yield {**self.environ, **address.environ}, context
        finally:
            await address.close()


def trip_of(name: str, *injections: Injection) -> LiveContext:
    """A trial without an agent, in this weather."""
    return LiveContext(Trial(f"doctor {name}", "contract", Scenario(name, injections), Task((name,))))


@asynccontextmanager
async def opened(environ: Mapping[str, str]) -> AsyncIterator[ProbeSite]:
    """The site, while it is needed; nothing of it is left behind."""
    with scratch.folder("doctor") as root, socket.socket() as nobody:
        (root / "model.yaml").write_text(_SCRIPT, encoding="utf-8")
        nobody.bind(("127.0.0.1", 0))  # never listens: who comes here directly is turned away
        server = await serve(_answer)
        try:
            plain = f"http://127.0.0.1:{server.port}/"
            secure = f"https://localhost:{nobody.getsockname()[1]}/"
            site_planes = SitePlanes(_settings(root, environ, (f"{plain}*", f"{secure}*")))
            try:
                yield ProbeSite(site_planes, plain, secure, environ)
            finally:
                await site_planes.close()
        finally:
            await server.close()


def _settings(root: Path, environ: Mapping[str, str], urls: Sequence[str]) -> PlaneSettings:
    server = {"command": sys.executable, "args": ["-I", "-S", str(MCP_SERVER)]}
    return PlaneSettings(
        AgentSpec(type="command", command="true", mcp_config={"mcpServers": {"doctor": server}}),
        root,
        environ,
        {"*": ModelSpec(provider="script", script="model.yaml")},
        (Scenario("doctor", tuple([Injection("http", url, "down") for url in urls])),),
    )


async def _answer(exchange: Exchange) -> None:
    await exchange.respond(200, (("content-type", "text/plain"),), SERVED.encode())


@asynccontextmanager
async def started(argv: Sequence[str], environ: Mapping[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program in a session of its own; when this is over, nothing of it runs any more."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(environ), start_new_session=True
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.communicate()  # what is left in its pipes is read, so that they are closed


async def said_by(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[str, str]:
    """What a program printed, on stdout and on stderr."""
    async with started(argv, environ) as process:
        out, err = await process.communicate()
        return out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
