"""Opens an agent whose traffic is met: started by us, behind the gateway, or in Python."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from holdfast.execute.site import ModelOptions, Site, on_web, own_targets, rule_urls
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec, ModelSpec, Spec, Task
from holdfast.model.trial import Trial
from holdfast.planes.handover import take
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from holdfast.planes.trial_address import TrialAddress
from holdfast.protocols import Agent, TrialContext
from holdfast.spec.references import resolve

GATEWAY_FOLDER = Path(".holdfast")
"""Where a gateway that stands by is found."""


class Harboured:
    """An agent and the site's planes that its calls go through: closed together."""

    def __init__(self, agent: Agent, close: Callable[[], Awaitable[None]]) -> None:
        self._agent = agent
        self._close = close

    async def run(self, task: Task, context: TrialContext) -> Answer:
        return await self._agent.run(task, context)

    async def reset(self, trial: Trial) -> None:
        await self._agent.reset(trial)

    async def close(self) -> None:
        try:
            await self._agent.close()
        finally:
            await self._close()


class BehindGateway(Harboured):
    """A running HTTP agent that was started with a gateway's variables: one trial at a time."""

    def __init__(self, agent: Agent, address: TrialAddress, close: Callable[[], Awaitable[None]]) -> None:
        super().__init__(agent, close)
        self._address = address

    async def run(self, task: Task, context: TrialContext) -> Answer:
        with self._address.carry(context):
            return await super().run(task, context)


async def open_moored(
    spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str], at_once: int, models: ModelOptions
) -> Site:
    """The site of an agent whose references are resolved."""
    settings = PlaneSettings(
        agent,
        root,
        environ,
        resolved_models(spec, environ),
        spec.scenarios,
        web=on_web(spec),
        read=rule_urls(spec),
        record=models.record,
        replay=models.replay,
        mask=models.mask,
    )
    if agent.gateway:
        return await _behind_gateway(spec, agent, settings)
    site_planes = SitePlanes(settings)
    try:
        site = await (_launched if agent.launched else _python)(spec, agent, settings, site_planes, at_once)
    except BaseException:
        await site_planes.close()
        raise
    site.agent = Harboured(site.agent, site_planes.close)
    return site


async def _launched(
    spec: Spec, agent: AgentSpec, settings: PlaneSettings, site_planes: SitePlanes, at_once: int
) -> Site:
    from holdfast.agents.launching import open_launched

    started = await open_launched(agent, settings.root, settings.environ, at_once, site_planes.open_address)
    limit = at_once if started.limit is None else min(at_once, started.limit)
    return Site(spec, started, limit, started.notes)


async def _python(spec: Spec, agent: AgentSpec, settings: PlaneSettings, site_planes: SitePlanes, at_once: int) -> Site:
    from holdfast.agents.python import PythonAgent

    python = await PythonAgent.open(
        agent, settings.root, spec.scenarios, {**settings.environ, **agent.env}, site_planes
    )
    site_planes.tools = frozenset(python.ready.tools)
    targets = await own_targets(spec, python, python.ready.tools, python.ready.llm, on_wire=True)
    return Site(spec, python, at_once, (python.cost_note,) if python.cost_note else (), targets)


async def _behind_gateway(spec: Spec, agent: AgentSpec, settings: PlaneSettings) -> Site:
    from holdfast.agents.http import HttpAgent

    async with AsyncExitStack() as opened:
        taken = take(GATEWAY_FOLDER)
        opened.callback(taken.give_back)
        site_planes = SitePlanes(settings, taken.handed.authority)
        opened.push_async_callback(site_planes.close)
        address = await site_planes.open_address(sock=taken.listening, token=taken.handed.token)
        opened.push_async_callback(address.close)
        http = await HttpAgent.open(agent, root=settings.root, limit=1)
        return Site(spec, BehindGateway(http, address, opened.pop_all().aclose), 1)


def resolved_models(spec: Spec, environ: Mapping[str, str]) -> dict[str, ModelSpec]:
    """What each model's name means, references replaced by values."""
    return {name: _resolved(model, environ) for name, model in spec.models.items()}


def _resolved(model: ModelSpec, environ: Mapping[str, str]) -> ModelSpec:
    texts = {"name": model.name, "api_key": model.api_key, "base_url": model.base_url, "script": model.script}
    return replace(model, **{key: resolve(text, environ) for key, text in texts.items() if text})
