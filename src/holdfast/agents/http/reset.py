"""Restores a running agent's initial state: by POST, by a function in a child process, or both."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

from holdfast.agents.conversation import RESET_S
from holdfast.agents.http.client import HttpClient
from holdfast.agents.http.request import HttpRequest, HttpUrl, read_url
from holdfast.errors import AgentMisconfigured, AgentUnavailable, HarnessError
from holdfast.model.spec import AgentSpec
from holdfast.processes.program import run_child

_TAIL = 400

_CALL = """\
import asyncio, functools, importlib, inspect, sys
sys.path.insert(0, sys.argv[1])
module, _, name = sys.argv[2].partition(":")
done = functools.reduce(getattr, name.split("."), importlib.import_module(module))()
async def rest():
    await done
if inspect.isawaitable(done):
    asyncio.run(rest())
"""


@dataclass(frozen=True)
class Reset:
    """The reset of the spec, ready to be called before each trial."""

    url: HttpUrl | None
    wire: HttpClient | None
    function: str | None
    root: Path
    env: dict[str, str]

    async def __call__(self) -> None:
        """Reset the agent; raise HarnessError if it cannot."""
        if self.url is not None and self.wire is not None:
            await _post_reset(self.wire, self.url)
        if self.function:
            await _call_function(self.function, self.root, self.env)

    async def close(self) -> None:
        if self.wire is not None:
            await self.wire.close()


def open_reset(agent: AgentSpec, endpoint: HttpUrl | None, root: Path, limit: int) -> Reset:
    """Return the agent's reset, which does nothing if the spec names none. An agent without a URL has no endpoint."""
    url = wire = None
    if agent.reset_endpoint:
        try:
            url = read_url(urljoin(endpoint.text if endpoint else "", agent.reset_endpoint))
        except ValueError:
            raise AgentMisconfigured(
                f"agent.reset_endpoint is not a URL: {agent.reset_endpoint!r}",
                hint="write a complete URL, or a path such as /reset on the agent's own server",
            ) from None
        # A server other than the agent's must not see the agent's credentials.
        is_same_server = endpoint is not None and _get_origin(url) == _get_origin(endpoint)
        headers = agent.headers if is_same_server else {}
        bare = {name: value for name, value in headers.items() if name.lower() != "content-type"}
        wire = HttpClient(url, bare, timeout_ms=round(RESET_S * 1000), limit=limit, keep=False)
    return Reset(url, wire, agent.reset_function, root.resolve(), {**os.environ, **agent.env})


def _get_origin(url: HttpUrl) -> tuple[str, str, int]:
    return url.endpoint.scheme, url.endpoint.host, url.endpoint.port


async def _post_reset(wire: HttpClient, url: HttpUrl) -> None:
    action = f"reset by POST {url.display_text}"
    try:
        exchange = await wire.send(HttpRequest("POST", url.endpoint.target))
    except AgentUnavailable as gone:
        raise HarnessError(f"{action} failed: {gone}", code="reset-failed") from gone
    if exchange.ending != "answered":
        raise HarnessError(f"{action} failed: {exchange.ending}, {exchange.detail}", code="reset-failed")
    if exchange.status is not None and exchange.status >= 400:
        body = " ".join(exchange.body[:_TAIL].decode("utf-8", "replace").split())
        raise HarnessError(f"{action} failed: HTTP {exchange.status} {body}".rstrip(), code="reset-failed")


async def _call_function(function: str, root: Path, env: dict[str, str]) -> None:
    with tempfile.TemporaryFile() as output:
        call = [sys.executable, "-P", "-c", _CALL, str(root), function]
        code = await run_child(call, RESET_S, stdout=output, stderr=output, cwd=root, env=env)
        if code == 0:
            return
        output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL))
        lines = output.read().decode("utf-8", "replace").strip().splitlines() or ["it printed nothing"]
    why = f"did not finish within {RESET_S:.0f} s" if code is None else f"exit {code}: {lines[-1]}"
    raise HarnessError(f"reset function {function} failed: {why}", code="reset-failed")
