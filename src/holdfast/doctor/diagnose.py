"""`holdfast doctor`: tries the machine, checks the spec and runs the agent once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.doctor.agent import ask_agent
from holdfast.doctor.machine import list_required_routes, try_machine
from holdfast.doctor.models import check_models
from holdfast.doctor.needs import check_needs
from holdfast.execute.plane_needs import needs_planes
from holdfast.execute.resolved_spec import ModelOptions, resolve_agent
from holdfast.model.codec import make_storable
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Problem, Spec
from holdfast.plan import RunOptions
from holdfast.plugins import get_fault_traits
from holdfast.report.terminal.diagnosis import AskedAgent, Diagnosis, DoctorFinding
from holdfast.report.wording import format_count
from holdfast.runner.job import read_world_secrets, refuse_unrunnable
from holdfast.secrets.masker import Masker
from holdfast.spec import read_secret_values

TellFindings = Callable[[str, str, Sequence[DoctorFinding], Sequence[str]], None]
"""Receives each part as soon as it is known: title, subject, findings and notes."""


class ExaminedSpec:
    """A runnable spec and the options of the doctor."""

    def __init__(
        self, spec: Spec, problems: tuple[Problem, ...], environ: Mapping[str, str], replay: Path | None, ask: bool
    ) -> None:
        """Raise the same errors as a run if the spec cannot be run."""
        refuse_unrunnable(spec)
        self.spec = spec
        self.problems = problems
        secrets = read_world_secrets(spec, RunOptions(), environ)
        self.mask = Masker((*read_secret_values(spec, environ), *secrets.values()))
        self.models = ModelOptions(None, replay, self.mask.mask_text)
        self.agent = resolve_agent(spec.agent, environ, spec.params[0], secrets)
        self.ask = ask


async def examine_agent(case: ExaminedSpec, environ: Mapping[str, str], tell: TellFindings) -> Diagnosis:
    """Check only the agent: what it needs, and its answer to the first prompt."""
    needs = await check_needs(case.spec, case.agent, environ)
    broken = tuple([case.mask.mask_struct(one) for one in needs if one.broken])
    if broken:
        tell("agent", "not run: something it needs is missing", broken, ())
        return Diagnosis((), broken)
    return Diagnosis((), (), await _ask(case, environ, tell))


async def _ask(case: ExaminedSpec, environ: Mapping[str, str], tell: TellFindings) -> AskedAgent:
    result: AskedAgent = case.mask.mask_struct(make_storable(await ask_agent(case.spec, environ, case.models)))
    tell("agent", f"run once, in calm: {result.prompt}", result.findings, result.notes)
    return result


async def examine(case: ExaminedSpec | None, environ: Mapping[str, str], tell: TellFindings) -> Diagnosis:
    """Try the machine, check the spec and run the agent; report each part as soon as it is known."""
    wanted = list_required_routes(case.spec if case else None, case.models if case else ModelOptions())
    machine = await try_machine(environ, wanted)
    tell("machine", "each route tried with a real call and a fault on it", machine, ())
    if case is None:
        return Diagnosis(machine)
    spec, mask = case.spec, case.mask
    placed = await examine_spec(spec, case.agent, case.problems, environ, case.models)
    needs = await check_needs(spec, case.agent, environ)
    findings = tuple([mask.mask_struct(one) for one in (*placed, *needs)])
    tell("spec", f"{spec.path}: {format_count(len(spec.scenarios), 'scenario')}", findings, ())
    if not case.ask:
        return Diagnosis(machine, findings)
    if any(one.broken for one in needs):
        tell("agent", "not run: something it needs is missing", (), ())
        return Diagnosis(machine, findings)
    return Diagnosis(machine, findings, await _ask(case, environ, tell))


# -- spec ------------------------------------------------------------------------------------------
async def examine_spec(
    spec: Spec, agent: AgentSpec, problems: Iterable[Problem], environ: Mapping[str, str], models: ModelOptions
) -> tuple[DoctorFinding, ...]:
    """Say where each fault acts and who answers model calls; neither starts nor imports the agent.

    `agent` is the spec's section with its references resolved.
    """
    findings = [one for scenario in spec.scenarios for one in _check_scenario(scenario, agent, spec.tools_on_wire)]
    for problem in problems:
        if problem.code == "left-out-scenario":
            name, why = problem.values
            findings.append(DoctorFinding(name, "n/a", "scenario-left-out", f"left out: {why}", problem.hint))
    if needs_planes(spec, models):
        findings += await check_models(spec, agent, environ, models)
    return tuple(findings)


def _check_scenario(scenario: Scenario, agent: AgentSpec, on_wire: bool) -> Iterator[DoctorFinding]:
    if scenario.calm and not scenario.left_out:
        yield DoctorFinding(scenario.name, "n/a", "calm", "calm: no fault")
    for fault in scenario.injections:
        yield DoctorFinding(
            f"{scenario.name}: {fault.label}", "ok", "fault-placed", describe_place(fault, agent, on_wire=on_wire)
        )
    for left, (why, way_out) in zip(scenario.left_out, scenario.left_out_why, strict=True):
        yield DoctorFinding(f"{scenario.name}: {left}", "n/a", "fault-left-out", f"left out: {why}", way_out)


def describe_place(fault: Injection, agent: AgentSpec, *, on_wire: bool = False) -> str:
    """Describe where the agent meets a fault; `on_wire` if a framework runs the tools of a Python agent."""
    if fault.plane == "context" and fault.target == "input":
        return "in the prompt"
    if agent.simulate == "answer":
        return "in the agent's answer (agent.simulate): not in its own calls"
    if fault.plane == "http" or fault.match_url is not None:
        return "at the URL, through the proxy"
    if fault.plane == "llm":
        if agent.is_python and agent.llm:
            return "in the model function: " + ", ".join(ref.name or ref.path for ref in agent.llm)
        return "in the model traffic"
    if fault.plane == "mcp":
        listed = get_fault_traits(fault.plane, fault.mode).on_listings
        return "where its MCP servers list their tools" if listed else "in its MCP traffic"
    return " or ".join(_describe_tool_places(fault, agent, on_wire=on_wire))


def _describe_tool_places(fault: Injection, agent: AgentSpec, *, on_wire: bool) -> Iterator[str]:
    if agent.is_python and not on_wire and (agent.tools or agent.tool_registry or agent.mcp_config is None):
        yield "in the Python function"
    if agent.mcp_config is not None:
        yield "in its MCP traffic"
    if (on_wire or not agent.is_python) and get_fault_traits(fault.plane, fault.mode).on_results:
        yield "in the tool's result in the model traffic (the tool itself runs)"
