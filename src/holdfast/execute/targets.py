"""Whether an opened agent has what the faults of a spec are placed on."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from holdfast.errors import SpecError
from holdfast.model.spec import Injection, Problem, Scenario, Spec
from holdfast.spec.load import source_of


def check_targets(spec: Spec, tools: Sequence[str], llm: Sequence[str], *, on_wire: bool = False) -> None:
    """Refuses a fault whose target this agent does not have, before the agent is asked anything.

    `on_wire`: its traffic is met too, so a model it has no function for, a URL or an MCP tool may be met there.
    """
    problems = []
    for scenario in spec.scenarios:
        for injection in scenario.injections:
            if on_wire and _may_be_met(spec, injection, llm):
                continue
            have = {"tool": tools, "llm": llm}.get(injection.plane)
            if injection.plane == "context" and injection.target != "input":
                have = tools
            if have is None or any(fnmatchcase(name, injection.target) for name in have):
                continue
            problems.append(_unmet(scenario, injection, have))
    if problems:
        raise SpecError(spec.path, problems, source=source_of(spec))


def _may_be_met(spec: Spec, injection: Injection, llm: Sequence[str]) -> bool:
    if injection.plane == "llm":
        return not llm
    return injection.match_url is not None or spec.agent.mcp_config is not None or spec.tools_on_wire


def _unmet(scenario: Scenario, injection: Injection, have: Sequence[str]) -> Problem:
    from difflib import get_close_matches

    plane, target, position = injection.plane, injection.target, injection.position
    line, column = (position.line, position.column) if position else (0, 0)
    path = f"chaos_matrix[{scenario.name}]"
    if not have:
        way = "agent.llm: [module:function]" if plane == "llm" else "agent.tools, agent.tool_registry or @holdfast.tool"
        what = "model functions" if plane == "llm" else "tools"
        message = f"{plane} faults need {what}, and this agent declares none"
        return Problem(message, path, line, column, hint=f"name them by {way}", code="no-targets")
    near = get_close_matches(target, have, 1)
    hint = (f"did you mean {near[0]}? " if near else "") + f"It has: {', '.join(have)}"
    message = f"no {plane} of this agent is called {target!r}"
    return Problem(message, path, line, column, hint=hint, code="unknown-tool")
