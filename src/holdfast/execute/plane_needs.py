"""Decides which planes a spec needs, and their settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from holdfast import plugins
from holdfast.execute.agent_section import resolve_models
from holdfast.execute.options import ASKED, ModelOptions
from holdfast.model.codes import RunWarning
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.traits import CheckTraits
from holdfast.plan.checks import get_traits

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


def needs_planes(spec: Spec, models: ModelOptions = ASKED) -> bool:
    """Whether to intercept the agent's traffic.

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


def warn_unused_proxy(spec: Spec, environ: Mapping[str, str], models: ModelOptions = ASKED) -> RunWarning | None:
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
    """Whether a fault targets a URL, a rule reads requests, or the agent's HTTP is always watched."""
    agent = spec.agent
    has_url_fault = any(i.plane == "http" or i.match_url is not None for i in _list_injections(spec))
    return (
        has_url_fault or agent.launched or agent.gateway or bool(list_rule_urls(spec)) or bool(list_recorded_urls(spec))
    )


def list_rule_urls(spec: Spec) -> tuple[str, ...]:
    """URL globs of the requests that rules about calls read."""
    return tuple(dict.fromkeys(url for traits in _list_traits(spec) for url in traits.urls))


def has_recordings(spec: Spec) -> bool:
    """Whether the tools of a recording answer a task."""
    return any(task.recording is not UNSET for task in spec.tasks)


def list_recorded_urls(spec: Spec) -> tuple[str, ...]:
    """URL globs of the requests that recordings answer or refuse: all, unless unknown ones pass."""
    recordings = [task.recording for task in spec.tasks if task.recording is not UNSET]
    if not recordings:
        return ()
    from holdfast.planes.urls import is_url

    urls = (one.tool for recording in recordings for one in recording.responses if is_url(one.tool))
    return tuple(dict.fromkeys((*urls, *("*" for recording in recordings if not recording.live))))


def warn_unmet_recordings(spec: Spec) -> RunWarning | None:
    """Return a warning if this agent's calls bypass a plane on which recordings answer."""
    agent = spec.agent
    if not has_recordings(spec) or agent.launched or agent.gateway:
        return None
    if not agent.is_python:
        return RunWarning(
            "recordings-unmet",
            "recorded tool responses are not given to an HTTP agent that Holdfast did not start: its tools are the "
            "real ones. Name agent.command, or put it behind a gateway (agent.gateway: true)",
        )
    if agent.isolation == "inline":
        return RunWarning(
            "recordings-unmet",
            "an inline agent gets recorded responses of its declared functions only: its HTTP, MCP and model calls "
            "go to the real services. Use isolation: fresh or worker for those",
        )
    return None


def needs_cost(spec: Spec) -> bool:
    """Whether a rule reads the cost of model calls."""
    return any(traits.reads_cost for traits in _list_traits(spec))


def _list_traits(spec: Spec) -> Iterator[CheckTraits]:
    return (get_traits(rule) for rule in spec.invariants if plugins.find("checks", rule.check) is not None)


def _is_on_wire(injection: Injection, spec: Spec) -> bool:
    if injection.plane in ("tool", "context"):
        return spec.tools_on_wire and injection.target != "input"
    return injection.plane == "mcp" or (injection.plane == "llm" and not spec.agent.llm)


def _list_injections(spec: Spec) -> Iterator[Injection]:
    return (injection for scenario in list_scenarios(spec) for injection in scenario.injections)
