"""The spec's part of a diagnosis: where each fault will be met, and who answers for the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from holdfast.doctor.models import where_models_go
from holdfast.execute.options import ModelOptions
from holdfast.execute.plane_needs import needs_planes
from holdfast.model.spec import AgentSpec, Injection, Problem, Scenario, Spec
from holdfast.plugins import fault_traits
from holdfast.report.diagnosis import DoctorFinding


async def look_at_spec(
    spec: Spec, agent: AgentSpec, problems: Iterable[Problem], environ: Mapping[str, str], models: ModelOptions
) -> tuple[DoctorFinding, ...]:
    """`agent` is the spec's section with its references resolved. Nothing of the agent is started or imported."""
    found = [one for scenario in spec.scenarios for one in _scenario(scenario, agent, spec.tools_on_wire)]
    found += [_left_out(problem) for problem in problems if problem.code == "left-out-scenario"]
    if needs_planes(spec, models):
        found += await where_models_go(spec, agent, environ, models)
    return tuple(found)


def _scenario(scenario: Scenario, agent: AgentSpec, on_wire: bool) -> Iterator[DoctorFinding]:
    if scenario.calm and not scenario.left_out:
        yield DoctorFinding(scenario.name, "n/a", "calm: no fault")
    for fault in scenario.injections:
        yield DoctorFinding(f"{scenario.name}: {fault.label}", "ok", met_at(fault, agent, on_wire=on_wire))
    for left, (why, way_out) in zip(scenario.left_out, scenario.left_out_why, strict=True):
        yield DoctorFinding(f"{scenario.name}: {left}", "n/a", f"left out: {why}", way_out)


def _left_out(problem: Problem) -> DoctorFinding:
    name, _, why = problem.message.partition(" is left out: ")
    return DoctorFinding(name, "n/a", f"left out: {why}", problem.hint)


def met_at(fault: Injection, agent: AgentSpec, *, on_wire: bool = False) -> str:
    """Where the agent meets a fault, in words; `on_wire`: the tools of a Python agent are its framework's."""
    if fault.plane == "context" and fault.target == "input":
        return "in the prompt"
    if agent.simulate == "answer":
        return "in the agent's answer (agent.simulate): not in its own calls"
    if fault.plane == "http" or fault.match_url is not None:
        return "at the URL, through the proxy"
    if fault.plane == "llm":
        return _at_model(agent)
    if fault.plane == "mcp":
        listed = fault_traits(fault.plane, fault.mode).on_listings
        return "where its MCP servers list their tools" if listed else "in its MCP traffic"
    return " or ".join(_at_tools(fault, agent, on_wire=on_wire))


def _at_model(agent: AgentSpec) -> str:
    if agent.in_python and agent.llm:
        return "in the model function: " + ", ".join(ref.name or ref.path for ref in agent.llm)
    return "in the model traffic"


def _at_tools(fault: Injection, agent: AgentSpec, *, on_wire: bool) -> Iterator[str]:
    if agent.in_python and not on_wire and (agent.tools or agent.tool_registry or agent.mcp_config is None):
        yield "in the Python function"
    if agent.mcp_config is not None:
        yield "in its MCP traffic"
    if (on_wire or not agent.in_python) and fault_traits(fault.plane, fault.mode).on_results:
        yield "in the tool's result in the model traffic (the tool itself runs)"
