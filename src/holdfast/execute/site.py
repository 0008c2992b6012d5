"""A Site: what one worker keeps warm between trials. Opened once from a Spec, closed at the end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.errors import SpecError
from holdfast.execute.targets import check_targets
from holdfast.execute.wrapped import ByParams, WithParams
from holdfast.model.spec import AgentSpec, Scenario, Spec
from holdfast.protocols import Agent
from holdfast.spec.references import names, resolve


class Site:
    """The agent, opened, and the scenarios by name."""

    def __init__(
        self, spec: Spec, agent: Agent, concurrency: int, notes: tuple[str, ...] = (), targets: tuple[str, ...] = ()
    ) -> None:
        self.spec = spec
        self.targets = targets
        """Tools and model functions that faults can hit."""
        self.agent = agent
        self.concurrency = concurrency
        self.notes = notes
        self.scenarios: Mapping[str, Scenario] = {s.name: s for s in spec.scenarios}
        self.simulate = spec.agent.simulate == "answer"
        self.has_reset = spec.agent.has_reset

    async def close(self) -> None:
        await self.agent.close()


async def open_site(spec: Spec, *, environ: Mapping[str, str], concurrency: int | None = None) -> Site:
    """Opens the agent; raises AgentUnavailable or SpecError where it cannot be used."""
    root = Path(spec.path).resolve().parent
    at_once = slots(spec, concurrency)
    if spec.params == ({},):
        return await _open(spec, resolve_agent(spec.agent, environ), root, environ, at_once)
    combinations = spec.params if refers_to_params(spec.agent) else spec.params[:1]
    sites: list[Site] = []
    try:
        for params in combinations:
            agent = resolve_agent(spec.agent, environ, params)
            sites.append(await _open(spec, agent, root, environ, at_once))
    except BaseException:
        for site in sites:
            await site.close()
        raise
    first = sites[0]
    if len(sites) > 1:
        first.agent = ByParams(combinations, [site.agent for site in sites])
    first.agent = WithParams(first.agent)
    return first


async def _open(spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str], at_once: int) -> Site:
    """The site of an agent whose references are resolved."""
    if agent.type == "http":
        from holdfast.agents.http import HttpAgent

        return Site(spec, await HttpAgent.open(agent, root=root, limit=at_once), at_once)
    if agent.isolation == "inline":
        from holdfast.agents.inline import InlineAgent

        inline = await InlineAgent.open(agent, root, spec.scenarios)
        targets = await _targets(spec, inline, inline.installed.tools, inline.installed.llm)
        note = "the agent runs inside Holdfast's own process: a hang or crash ends the run"
        return Site(spec, inline, 1, (note,), targets)
    from holdfast.agents.python import PythonAgent

    python = await PythonAgent.open(agent, root, spec.scenarios, {**environ, **agent.env})
    targets = await _targets(spec, python, python.ready.tools, python.ready.llm)
    notes = (python.cost_note,) if python.cost_note else ()
    return Site(spec, python, at_once, notes, targets)


async def _targets(spec: Spec, agent: Agent, tools: Sequence[str], llm: Sequence[str]) -> tuple[str, ...]:
    """What faults can hit in the agent, which is closed again if a fault names anything else."""
    try:
        check_targets(spec, tools, llm)
    except SpecError:
        await agent.close()
        raise
    return (*tools, *llm)


def slots(spec: Spec, asked: int | None) -> int:
    """How many trials run at once: what was asked, else `advanced.concurrency` for HTTP and cores for others."""
    agent = spec.agent
    if agent.isolation == "inline" and agent.type != "http":
        return 1
    if agent.type == "http" and agent.has_reset:
        return 1  # one shared agent: its trials may not overlap
    if asked is not None:
        return asked
    return spec.concurrency if agent.type == "http" else os.cpu_count() or 1


def resolve_agent(agent: AgentSpec, environ: Mapping[str, str], params: Mapping[str, Any] | None = None) -> AgentSpec:
    """The agent section with every reference replaced by its value."""

    def value(text: str) -> str:
        return resolve(text, environ, params=params)

    def values(mapping: Mapping[str, str]) -> dict[str, str]:
        return {key: value(text) for key, text in mapping.items()}

    changes: dict[str, Any] = {name: values(mapping) for name, mapping in _mappings(agent).items()}
    changes |= {name: value(text) for name, text in _texts(agent).items() if text is not None}
    return replace(agent, **changes)


def refers_to_params(agent: AgentSpec) -> bool:
    """Whether the section has a `{{ params.x }}` in it."""
    texts = [*_texts(agent).values(), *(text for mapping in _mappings(agent).values() for text in mapping.values())]
    return any(names(text).params for text in texts if text is not None)


def _texts(agent: AgentSpec) -> dict[str, str | None]:
    """The strings of the section that may hold references."""
    return {
        "endpoint": agent.endpoint,
        "request_template": agent.request_template,
        "response_path": agent.response_path,
        "reset_endpoint": agent.reset_endpoint,
    }


def _mappings(agent: AgentSpec) -> dict[str, dict[str, str]]:
    """The maps of the section whose values may hold references."""
    return {"headers": agent.headers, "query_params": agent.query_params, "env": agent.env}
