"""A Site: what one worker keeps warm between trials. Opened once from a Spec, closed at the end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.errors import AgentUnavailable, SpecError
from holdfast.execute.wrapped import ByParams, WithParams
from holdfast.model.spec import AgentSpec, Problem, Scenario, Spec
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
        try:
            check_targets(spec, inline.installed.tools, inline.installed.llm)
        except SpecError:
            await inline.close()
            raise
        note = "the agent runs inside Holdfast's own process: a hang or crash ends the run"
        targets = (*inline.installed.tools, *inline.installed.llm)
        return Site(spec, inline, 1, (note,), targets)
    from holdfast.agents.python import PythonAgent

    python = await PythonAgent.open(agent, root, spec.scenarios, {**environ, **agent.env})
    try:
        check_targets(spec, python.ready.tools, python.ready.llm)
    except SpecError:
        await python.close()
        raise
    notes = (python.cost_note,) if python.cost_note else ()
    targets = (*python.ready.tools, *python.ready.llm)
    return Site(spec, python, at_once, notes, targets)


def slots(spec: Spec, asked: int | None) -> int:
    """How many trials run at once: what was asked, else cores, else `advanced.concurrency` for HTTP."""
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


def check_targets(spec: Spec, tools: list[str] | tuple[str, ...], llm: list[str] | tuple[str, ...]) -> None:
    """Refuses a fault whose target this agent does not have, before the agent is asked anything."""
    from fnmatch import fnmatchcase

    problems = []
    for scenario in spec.scenarios:
        for injection in scenario.injections:
            have = {"tool": tools, "llm": llm}.get(injection.plane)
            if injection.plane == "context" and injection.target != "input":
                have = tools
            if have is None or any(fnmatchcase(name, injection.target) for name in have):
                continue
            problems.append(_unmet(scenario, injection.plane, injection.target, have, injection.position))
    if problems:
        raise SpecError(spec.path, problems, source=_source(spec.path))


def _unmet(scenario: Scenario, plane: str, target: str, have: Any, position: Any) -> Problem:
    from difflib import get_close_matches

    where = {"line": position.line, "column": position.column} if position else {}
    path = f"chaos_matrix[{scenario.name}]"
    if not have:
        way = "agent.llm: [module:function]" if plane == "llm" else "agent.tools, agent.tool_registry or @holdfast.tool"
        what = "model functions" if plane == "llm" else "tools"
        return Problem(f"{plane} faults need {what}, and this agent declares none", path, hint=f"name them by {way}",
                       code="no-targets", **where)  # fmt: skip
    near = get_close_matches(target, list(have), 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return Problem(f"no {plane} of this agent is called {target!r}", path, hint=f"{hint}It has: {', '.join(have)}",
                   code="unknown-tool", **where)  # fmt: skip


def _source(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def unavailable(broken: AgentUnavailable) -> str:
    """The failure as one line of a trial's error."""
    return f"{broken}. {broken.hint}" if broken.hint else str(broken)
