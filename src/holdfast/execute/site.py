"""A Site: what one worker keeps warm between trials. Opened once from a Spec, closed at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast import plugins
from holdfast.errors import AgentUnavailable, SpecError
from holdfast.execute.targets import check_targets
from holdfast.execute.wrapped import ByParams, WithParams
from holdfast.model.spec import AgentSpec, Injection, Scenario, Spec
from holdfast.model.trial import Trial
from holdfast.plan.checks import make_check, urls_read
from holdfast.protocols import Agent
from holdfast.spec.references import interpolate, names, resolve

if TYPE_CHECKING:
    from holdfast.world.kept_world import WorldKeeper


class ModelOptions(Struct, frozen=True):
    """Where model calls are kept or answered from, as the command line says."""

    record: Path | None = None
    replay: Path | None = None
    mask: Callable[[str], str] = str
    """Takes secrets out of what is recorded."""


_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")

ASKED = ModelOptions()
"""Model calls go where the spec sends them, and are not kept."""


class WorldOptions(Struct, frozen=True):
    """What the command line and the run add to a spec's world."""

    backend: str = "bubblewrap"
    secrets: Mapping[str, str] = {}
    strict: bool = False
    """What the backend cannot enforce is refused."""
    keep: WorldKeeper | None = None
    """Where the worlds of trials that failed stay for a look."""
    told: Callable[[Trial, str], None] = lambda trial, what: None
    """Hears what is of use only while a trial runs."""


USUAL = WorldOptions()


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


async def open_site(
    spec: Spec,
    *,
    environ: Mapping[str, str],
    concurrency: int | None = None,
    models: ModelOptions = ASKED,
    surroundings: WorldOptions = USUAL,
) -> Site:
    """Opens the agent; raises AgentUnavailable or SpecError where it cannot be used."""
    try:
        return await _open_all(spec, environ, slots(spec, concurrency), models, surroundings)
    except AgentUnavailable as gone:
        at = spec.agent.position
        if not gone.key or at is None:
            raise
        message = f"{spec.path}:{at.line}: {gone}"
        raise AgentUnavailable(message, hint=gone.hint, body=gone.body, config=gone.config) from gone


async def _open_all(
    spec: Spec, environ: Mapping[str, str], at_once: int, models: ModelOptions, surroundings: WorldOptions
) -> Site:
    """The site of the agent, or of all that its params make of it."""
    root = Path(spec.path).resolve().parent
    if spec.params == ({},):
        return await _open(spec, resolve_agent(spec.agent, environ), root, environ, at_once, models, surroundings)
    combinations = spec.params if refers_to_params(spec.agent) else spec.params[:1]
    sites: list[Site] = []
    try:
        for params in combinations:
            agent = resolve_agent(spec.agent, environ, params)
            sites.append(await _open(spec, agent, root, environ, at_once, models, surroundings))
    except BaseException:
        for site in sites:
            await site.close()
        raise
    first = sites[0]
    if len(sites) > 1:
        first.agent = ByParams(combinations, [site.agent for site in sites])
    first.agent = WithParams(first.agent)
    return first


async def _open(
    spec: Spec,
    agent: AgentSpec,
    root: Path,
    environ: Mapping[str, str],
    at_once: int,
    models: ModelOptions,
    surroundings: WorldOptions,
) -> Site:
    """The site of an agent whose references are resolved."""
    if spec.world is not None:
        from holdfast.execute.housed import open_in_world

        return await open_in_world(spec, agent, root, environ, at_once, models, surroundings)
    if needs_planes(spec, models):
        from holdfast.execute.moored import open_moored

        return await open_moored(spec, agent, root, environ, at_once, models)
    if agent.type == "http":
        from holdfast.agents.http import HttpAgent

        return Site(spec, await HttpAgent.open(agent, root=root, limit=at_once), at_once)
    if agent.isolation == "inline":
        from holdfast.agents.inline import InlineAgent

        inline = await InlineAgent.open(agent, root, spec.scenarios)
        targets = await own_targets(spec, inline, inline.installed.tools, inline.installed.llm)
        note = "the agent runs inside Holdfast's own process: a hang or crash ends the run"
        return Site(spec, inline, 1, (note,), targets)
    from holdfast.agents.python import PythonAgent

    python = await PythonAgent.open(agent, root, spec.scenarios, {**environ, **agent.env})
    targets = await own_targets(spec, python, python.ready.tools, python.ready.llm)
    notes = (python.cost_note,) if python.cost_note else ()
    return Site(spec, python, at_once, notes, targets)


async def own_targets(
    spec: Spec, agent: Agent, tools: Sequence[str], llm: Sequence[str], *, on_wire: bool = False
) -> tuple[str, ...]:
    """What faults can hit in the agent, which is closed again if a fault names anything else."""
    try:
        check_targets(spec, tools, llm, on_wire=on_wire)
    except SpecError:
        await agent.close()
        raise
    return (*tools, *llm)


def needs_planes(spec: Spec, models: ModelOptions = ASKED) -> bool:
    """Whether the agent's traffic is met: always if we start it or it stands behind the gateway, else if asked for."""
    agent = spec.agent
    if agent.launched or agent.gateway:
        return True
    if not agent.in_python or agent.isolation == "inline":
        return False
    asked = spec.models or agent.mcp_config is not None or models.record or models.replay
    return bool(asked) or on_web(spec) or reads_cost(spec) or any(_on_wire(i, agent) for i in _injections(spec))


def unused_proxy(spec: Spec, environ: Mapping[str, str], models: ModelOptions = ASKED) -> str:
    """A warning where the user's own proxy is set and what the agent asks for goes past it; else empty."""
    named = [name for name in _PROXIES if environ.get(name) or environ.get(name.lower())]
    told_beforehand = models.replay is not None or (spec.models and all(m.script for m in spec.models.values()))
    if not named or not needs_planes(spec, models) or (told_beforehand and not on_web(spec)):
        return ""
    return (
        f"{' and '.join(named)} {'are' if len(named) > 1 else 'is'} set, and not gone through: Holdfast connects to "
        "models and hosts directly. Where no other way leads out, those calls fail and their trials are errors"
    )


def on_web(spec: Spec) -> bool:
    """Whether a fault waits at a URL, a rule reads requests, or the agent is one whose HTTP is watched anyway."""
    agent = spec.agent
    named = any(i.plane == "http" or i.match_url is not None for i in _injections(spec))
    return named or agent.launched or agent.gateway or bool(rule_urls(spec))


def rule_urls(spec: Spec) -> tuple[str, ...]:
    """URL globs of the requests that rules about calls read."""
    known = (rule for rule in spec.invariants if plugins.find("checks", rule.check) is not None)
    return tuple(dict.fromkeys(url for rule in known for url in urls_read(make_check(rule))))


def reads_cost(spec: Spec) -> bool:
    """Whether a rule asks what the model calls used."""
    return any(rule.check in ("max_tokens", "max_cost") for rule in spec.invariants)


def _on_wire(injection: Injection, agent: AgentSpec) -> bool:
    return injection.plane == "mcp" or (injection.plane == "llm" and not agent.llm)


def _injections(spec: Spec) -> Iterator[Injection]:
    return (injection for scenario in spec.scenarios for injection in scenario.injections)


def slots(spec: Spec, asked: int | None) -> int:
    """How many trials run at once: what was asked, else `advanced.concurrency` for HTTP and cores for others."""
    agent = spec.agent
    if agent.gateway or (agent.isolation == "inline" and agent.in_python):
        return 1
    if _reset_for_all(agent):
        return 1
    if asked is not None:
        return asked
    return spec.concurrency if agent.type == "http" and not agent.launched else os.cpu_count() or 1


def _reset_for_all(agent: AgentSpec) -> bool:
    """Whether a reset brings back what all trials share, so that they may not overlap.

    A Python agent is reset in its own process, a started server on its own port; a function beside them, or an address
    that is always the same, reaches none of them in particular.
    """
    if agent.in_python or not agent.has_reset:
        return False
    if agent.type != "http" or not agent.launched or agent.reset_function is not None:
        return True
    url = agent.reset_endpoint or ""
    return "://" in url and "{port}" not in url


def resolve_agent(agent: AgentSpec, environ: Mapping[str, str], params: Mapping[str, Any] | None = None) -> AgentSpec:
    """The agent section with every reference replaced by its value."""

    def value(text: str) -> str:
        return resolve(text, environ, params=params)

    def values(mapping: Mapping[str, str]) -> dict[str, str]:
        return {key: value(text) for key, text in mapping.items()}

    changes: dict[str, Any] = {name: values(mapping) for name, mapping in _mappings(agent).items()}
    changes |= {name: value(text) for name, text in _texts(agent).items() if text is not None}
    changes["args"] = tuple(interpolate(text, params or {}) for text in agent.args)
    if agent.command is not None:  # a dollar in it is the shell's
        changes["command"] = interpolate(agent.command, params or {})
    if isinstance(agent.mcp_config, dict):
        changes["mcp_config"] = _filled(agent.mcp_config, value)
    return replace(agent, **changes)


def _filled(part: Any, value: Callable[[str], str]) -> Any:
    """Every text of a nested value with its references replaced."""
    if isinstance(part, str):
        return value(part)
    if isinstance(part, Mapping):
        return {key: _filled(inner, value) for key, inner in part.items()}
    return [_filled(inner, value) for inner in part] if isinstance(part, list) else part


def refers_to_params(agent: AgentSpec) -> bool:
    """Whether the section has a `{{ params.x }}` in it."""
    mapped = [text for mapping in _mappings(agent).values() for text in mapping.values()]
    texts = [*_texts(agent).values(), agent.command, *agent.args, *mapped]
    return any(names(text).params for text in texts if text is not None)


def _texts(agent: AgentSpec) -> dict[str, str | None]:
    """The strings of the section that may hold references."""
    return {
        "endpoint": agent.endpoint,
        "request_template": agent.request_template,
        "response_path": agent.response_path,
        "reset_endpoint": agent.reset_endpoint,
        "binary": agent.binary,
        "ready": agent.ready,
        "answer_file": agent.answer_file,
        "input": agent.input,
    }


def _mappings(agent: AgentSpec) -> dict[str, dict[str, str]]:
    """The maps of the section whose values may hold references."""
    return {"headers": agent.headers, "query_params": agent.query_params, "env": agent.env}
