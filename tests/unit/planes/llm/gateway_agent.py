"""One trial of an agent behind the gateway; its model is a script, or a server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from aiohttp import web
from upstream_server import Server, serving

from gateway_trial import gateway_for
from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection
from planes_kit import FakeContext

Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]
Agent = Callable[[str], Awaitable[None]]
"""What the agent does with the base URL of OpenAI's format."""


def run_scripted(
    folder: Path, script: str, agent: Agent, *faults: Injection, until_traced: bool = False
) -> FakeContext:
    """Run the agent with a scripted model; `until_traced`: the trial lasts until a call of it is in the trace."""
    (folder / "model.yaml").write_text(script)
    model = ModelSpec("script", script="model.yaml")
    return asyncio.run(run_trial(folder, model, agent, faults, until_traced=until_traced))


def run_served(folder: Path, respond: Respond, agent: Agent, *faults: Injection) -> FakeContext:
    """Run the agent with a server that answers every request like this."""

    async def main() -> FakeContext:
        async with serving() as server:
            assert isinstance(server, Server)
            server.respond = respond
            model = ModelSpec("openai", base_url=f"{server.url}/v1", api_key="sk-own", input_usd=1.0)
            return await run_trial(folder, model, agent, faults)

    return asyncio.run(main())


async def run_trial(
    folder: Path, model: ModelSpec, agent: Agent, faults: Sequence[Injection], *, until_traced: bool = False
) -> FakeContext:
    context = FakeContext(faults)
    async with asyncio.timeout(20), gateway_for(context, folder, {"*": model}) as address:
        await agent(address.environ["OPENAI_BASE_URL"])
        while until_traced and not context.trace:
            await asyncio.sleep(0.005)
    return context
