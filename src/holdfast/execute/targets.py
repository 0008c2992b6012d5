"""Checks that an opened agent has the targets of a spec's faults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from holdfast.errors import SpecError
from holdfast.model.observation import list_unread_models
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import Problem, Spec
from holdfast.model.trace import TraceEvent
from holdfast.spec.explain import read_source

_OF_TOOLS = ("tool", "tool_result", "mcp")
"""Planes that show tool calls."""
_UNSEEN = "nothing can meet this fault: the agent declares no tools, and in a calm trial it offered its model none"
_UNREAD = "nothing can meet this fault: the agent declares no tools, and Holdfast cannot read how it asks its model"
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
    """Whether tool faults depend on the tools that a Python agent offers in its model calls.

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
    return next((one for one in own if one.plane == "tool" and one.match_url is None), None)


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
        way = "agent.llm: [module:function]" if plane == "llm" else "agent.tools, agent.tool_registry or @holdfast.tool"
        what = "model functions" if plane == "llm" else "tools"
        message = f"{plane} faults need {what}, but this agent declares none"
        return _make_problem(scenario, injection, message, f"name them by {way}", "no-targets")
    near = get_close_matches(target, have, 1)
    hint = (f"did you mean {near[0]}? " if near else "") + f"It has: {', '.join(have)}"
    message = f"no {plane} of this agent is called {target!r}"
    return _make_problem(scenario, injection, message, hint, "unknown-tool")
