"""Opens an agent whose traffic is met: started by us, behind the gateway, or in Python."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from holdfast.execute.site import Models, Site, on_web, own_targets, rule_urls
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec, ModelSpec, Spec, Task
from holdfast.model.trial import Trial
from holdfast.planes.handover import take
from holdfast.planes.harbour import Chart, Harbour
from holdfast.planes.mooring import Mooring
from holdfast.protocols import Agent, Trip
from holdfast.spec.references import resolve

GATEWAY_FOLDER = Path(".holdfast")
"""Where a gateway that stands by is found."""


class Harboured:
    """An agent and the harbour that its calls go through: closed together."""

    def __init__(self, agent: Agent, close: Callable[[], Awaitable[None]]) -> None:
        self._agent = agent
        self._close = close

    async def run(self, task: Task, trip: Trip) -> Answer:
        return await self._agent.run(task, trip)

    async def reset(self, trial: Trial) -> None:
        await self._agent.reset(trial)

    async def close(self) -> None:
        try:
            await self._agent.close()
        finally:
            await self._close()


class BehindGateway(Harboured):
    """A running HTTP agent that was started with a gateway's variables: one trial at a time."""

    def __init__(self, agent: Agent, mooring: Mooring, close: Callable[[], Awaitable[None]]) -> None:
        super().__init__(agent, close)
        self._mooring = mooring

    async def run(self, task: Task, trip: Trip) -> Answer:
        with self._mooring.carry(trip):
            return await super().run(task, trip)


async def open_moored(
    spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str], at_once: int, models: Models
) -> Site:
    """The site of an agent whose references are resolved."""
    chart = Chart(
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
        return await _behind_gateway(spec, agent, chart)
    harbour = Harbour(chart)
    try:
        site = await (_launched if agent.launched else _python)(spec, agent, chart, harbour, at_once)
    except BaseException:
        await harbour.close()
        raise
    site.agent = Harboured(site.agent, harbour.close)
    return site


async def _launched(spec: Spec, agent: AgentSpec, chart: Chart, harbour: Harbour, at_once: int) -> Site:
    from holdfast.agents.launching import open_launched

    started = await open_launched(agent, chart.root, chart.environ, at_once, harbour.moor)
    limit = at_once if started.limit is None else min(at_once, started.limit)
    return Site(spec, started, limit, started.notes)


async def _python(spec: Spec, agent: AgentSpec, chart: Chart, harbour: Harbour, at_once: int) -> Site:
    from holdfast.agents.python import PythonAgent

    python = await PythonAgent.open(agent, chart.root, spec.scenarios, {**chart.environ, **agent.env}, harbour)
    harbour.tools = frozenset(python.ready.tools)
    targets = await own_targets(spec, python, python.ready.tools, python.ready.llm, on_wire=True)
    return Site(spec, python, at_once, (python.cost_note,) if python.cost_note else (), targets)


async def _behind_gateway(spec: Spec, agent: AgentSpec, chart: Chart) -> Site:
    from holdfast.agents.http import HttpAgent

    async with AsyncExitStack() as opened:
        taken = take(GATEWAY_FOLDER)
        opened.callback(taken.give_back)
        harbour = Harbour(chart, taken.handed.authority)
        opened.push_async_callback(harbour.close)
        mooring = await harbour.moor(sock=taken.listening, token=taken.handed.token)
        opened.push_async_callback(mooring.close)
        http = await HttpAgent.open(agent, root=chart.root, limit=1)
        return Site(spec, BehindGateway(http, mooring, opened.pop_all().aclose), 1)


def resolved_models(spec: Spec, environ: Mapping[str, str]) -> dict[str, ModelSpec]:
    """What each model's name means, references replaced by values."""
    return {name: _resolved(model, environ) for name, model in spec.models.items()}


def _resolved(model: ModelSpec, environ: Mapping[str, str]) -> ModelSpec:
    texts = {"name": model.name, "api_key": model.api_key, "base_url": model.base_url, "script": model.script}
    return replace(model, **{key: resolve(text, environ) for key, text in texts.items() if text})
