"""Decides which planes a spec needs, and their settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from holdfast import plugins
from holdfast.errors import SpecError
from holdfast.execute.resolved_spec import LIVE_MODELS, ModelOptions, resolve_models
from holdfast.model.codes import RunWarning
from holdfast.model.observation import list_unread_models
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Problem, Spec
from holdfast.model.trace import TraceEvent
from holdfast.model.traits import CheckTraits
from holdfast.plan.checks import get_traits
from holdfast.spec.explain import read_source

if TYPE_CHECKING:
    from holdfast.planes.site_planes import PlaneSettings


def build_plane_settings(
    spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str], models: ModelOptions, *, web: bool
) -> PlaneSettings:
    """Build the settings for the planes of a site; `agent` is its section with references resolved."""
    # The planes import the gateway and MCP, which a run without planes never needs.
    from holdfast.planes.site_planes import PlaneSettings

    return PlaneSettings(
        agent,
        root,
        environ,
        resolve_models(spec, environ),
        list_scenarios(spec),
        web=web,
        read=(*list_rule_urls(spec), *list_recorded_urls(spec)),
        record=models.record,
        replay=models.replay,
        prefix=spec.part == "hunt",
        mask=models.mask,
        tool_results=not agent.is_python or spec.tools_on_wire or has_recordings(spec),
        network=None if spec.world is None else spec.world.network,
    )


def list_scenarios(spec: Spec) -> tuple[Scenario, ...]:
    """Return the scenarios that a site is opened for: those of the spec, and what a hunt may invent."""
    if spec.part != "hunt":
        return spec.scenarios
    from holdfast.hunt.points import build_full_scenario

    return (*spec.scenarios, build_full_scenario())


_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def needs_planes(spec: Spec, models: ModelOptions = LIVE_MODELS) -> bool:
    """Return whether the agent's traffic must be intercepted.

    Holdfast always does if it starts the agent or the agent is behind the gateway, otherwise on demand.
    """
    agent = spec.agent
    if agent.launched or agent.gateway:
        return True
    if not agent.is_python or agent.isolation == "inline":
        return False
    configured = spec.models or agent.mcp_config is not None or models.record or models.replay
    return (
        bool(configured)
        or has_recordings(spec)
        or needs_web_plane(spec)
        or needs_cost(spec)
        or agent.limits is not None
        or any(_is_on_wire(i, spec) for i in _list_injections(spec))
    )


def warn_unused_proxy(spec: Spec, environ: Mapping[str, str], models: ModelOptions = LIVE_MODELS) -> RunWarning | None:
    """Return a warning if the user's own proxy is set and the agent's calls do not go through it."""
    variables = [name for name in _PROXIES if environ.get(name) or environ.get(name.lower())]
    scripts = bool(spec.models) and all(model.is_script for model in spec.models.values())
    if not variables or not needs_planes(spec, models) or ((models.replay or scripts) and not needs_web_plane(spec)):
        return None
    return RunWarning(
        "proxy-unused",
        f"{' and '.join(variables)} {'are' if len(variables) > 1 else 'is'} set but not used: Holdfast connects to "
        "models and hosts directly. If only the proxy can reach them, those calls fail and their trials are errors",
    )


def needs_web_plane(spec: Spec) -> bool:
    """Return whether a fault targets a URL, a rule reads requests, or the agent's HTTP is always intercepted."""
    agent = spec.agent
    has_url_fault = any(i.plane == "http" or i.match_url is not None for i in _list_injections(spec))
    return (
        has_url_fault or agent.launched or agent.gateway or bool(list_rule_urls(spec)) or bool(list_recorded_urls(spec))
    )


def list_rule_urls(spec: Spec) -> tuple[str, ...]:
    """Return URL globs of the requests that rules about calls read."""
    return tuple(dict.fromkeys(url for traits in _list_traits(spec) for url in traits.urls))


def has_recordings(spec: Spec) -> bool:
    """Return whether a task's tools are answered from a recording."""
    return any(task.recording is not UNSET for task in spec.tasks)


def list_recorded_urls(spec: Spec) -> tuple[str, ...]:
    """Return URL globs of the requests that recordings answer or refuse: all, unless unknown requests are forwarded."""
    recordings = [task.recording for task in spec.tasks if task.recording is not UNSET]
    if not recordings:
        return ()
    from holdfast.planes.urls import is_url

    urls = (response.tool for recording in recordings for response in recording.responses if is_url(response.tool))
    return tuple(dict.fromkeys((*urls, *("*" for recording in recordings if not recording.live))))


def warn_unmet_recordings(spec: Spec) -> RunWarning | None:
    """Return a warning if this agent's calls bypass a plane on which recordings answer."""
    agent = spec.agent
    if not has_recordings(spec) or agent.launched or agent.gateway:
        return None
    if not agent.is_python:
        return RunWarning(
            "recordings-unmet",
            "an HTTP agent that Holdfast did not start calls its real tools, not the recorded responses. Set "
            "agent.command, or put it behind a gateway (agent.gateway: true)",
        )
    if agent.isolation == "inline":
        return RunWarning(
            "recordings-unmet",
            "an inline agent gets recorded responses only for its declared functions: its HTTP, MCP and model calls "
            "go to the real services. Use isolation: fresh or worker to replace those, too",
        )
    return None


def needs_cost(spec: Spec) -> bool:
    """Return whether a rule reads the cost of model calls."""
    return any(traits.reads_cost for traits in _list_traits(spec))


def _list_traits(spec: Spec) -> Iterator[CheckTraits]:
    return (get_traits(rule) for rule in spec.invariants if plugins.find("checks", rule.check) is not None)


def _is_on_wire(injection: Injection, spec: Spec) -> bool:
    if injection.plane in ("tool", "context"):
        return spec.tools_on_wire and injection.target != "input"
    return injection.plane == "mcp" or (injection.plane == "llm" and not spec.agent.llm)


def _list_injections(spec: Spec) -> Iterator[Injection]:
    return (injection for scenario in list_scenarios(spec) for injection in scenario.injections)


_OF_TOOLS = ("tool", "tool_result", "mcp")
"""Planes that show tool calls."""
_UNSEEN = "this fault can never be met: the agent declares no tools, and in a calm trial it offered its model none"
_UNREAD = "this fault can never be met: the agent declares no tools, and Holdfast cannot read how it asks its model"
_DECLARE = (
    "list its tool functions in agent.tools, or keep them in a holdfast.ToolRegistry and name it in agent.tool_registry"
)


def check_targets(spec: Spec, tools: Sequence[str], llm: Sequence[str], *, on_wire: bool = False) -> None:
    """Reject a fault whose target this agent does not have, before the agent is asked anything.

    `on_wire`: its traffic is intercepted, so a model without a function, a URL or an MCP tool may appear there.
    """
    problems = []
    for scenario in spec.scenarios:
        for injection in scenario.injections:
            if on_wire and _can_be_met(spec, injection, llm):
                continue
            have = {"tool": tools, "llm": llm}.get(injection.plane)
            if injection.plane == "context" and injection.target != "input":
                have = tools
            if have is None or any(fnmatchcase(name, injection.target) for name in have):
                continue
            problems.append(_describe_unmet(scenario, injection, have))
    if problems:
        raise SpecError(spec.path, problems, source=read_source(spec))


def needs_tool_check(spec: Spec, targets: Sequence[str]) -> bool:
    """Return whether tool faults depend on the tools that a Python agent offers in its model calls.

    That is so if it declares no tools, by its source and its `targets`. A profile's faults that the agent cannot
    meet are left out and named.
    """
    if not spec.tools_on_wire or targets or spec.agent.mcp_config is not None:
        return False
    return any(map(_find_tool_fault, spec.scenarios))


def check_tools_offered(spec: Spec, trace: Iterable[TraceEvent], calls: Iterable[str]) -> None:
    """Reject tool faults once a calm trial has shown that the agent offers its model no tools.

    `calls` show models in formats that Holdfast cannot read: what the agent offers those is unknown.
    """
    if any(event.offers_tools or event.plane in _OF_TOOLS for event in trace):
        return
    faults = [(scenario, fault) for scenario in spec.scenarios if (fault := _find_tool_fault(scenario)) is not None]
    unread = list_unread_models(calls)
    why = f"{_UNREAD}: {', '.join(unread)}" if unread else _UNSEEN
    problems = [_make_problem(scenario, fault, why, _DECLARE, "no-tools-seen") for scenario, fault in faults]
    raise SpecError(spec.path, problems, source=read_source(spec))


def _find_tool_fault(scenario: Scenario) -> Injection | None:
    """Return the first fault of the scenario's own that names a tool."""
    own = scenario.injections if scenario.profile is None else ()
    return next((injection for injection in own if injection.plane == "tool" and injection.match_url is None), None)


def _make_problem(scenario: Scenario, injection: Injection, message: str, hint: str, code: str) -> Problem:
    line, column = (injection.position.line, injection.position.column) if injection.position else (0, 0)
    return Problem(message, f"chaos_matrix[{scenario.name}]", line, column, hint=hint, code=code)


def _can_be_met(spec: Spec, injection: Injection, llm: Sequence[str]) -> bool:
    if injection.plane == "llm":
        return not llm
    return injection.match_url is not None or spec.agent.mcp_config is not None or spec.tools_on_wire


def _describe_unmet(scenario: Scenario, injection: Injection, have: Sequence[str]) -> Problem:
    from difflib import get_close_matches

    plane, target = injection.plane, injection.target
    if not have:
        key = "agent.llm: [module:function]" if plane == "llm" else "agent.tools, agent.tool_registry or @holdfast.tool"
        kind = "model functions" if plane == "llm" else "tools"
        message = f"{plane} faults need {kind}, but this agent declares none"
        return _make_problem(scenario, injection, message, f"name them by {key}", "no-targets")
    near = get_close_matches(target, have, 1)
    hint = (f"did you mean {near[0]}? " if near else "") + f"It has: {', '.join(have)}"
    message = f"no {plane} of this agent is called {target!r}"
    return _make_problem(scenario, injection, message, hint, "unknown-tool")
