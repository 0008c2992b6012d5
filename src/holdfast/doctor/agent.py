"""The agent's part of a diagnosis: one calm trial, the calls it made, and the faults that wait for such calls."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.doctor.probe_site import build_context
from holdfast.errors import AgentUnavailable, SpecError, UsageError
from holdfast.execute.open_site import open_site
from holdfast.execute.plane_needs import needs_planes, needs_web_plane
from holdfast.execute.resolved_spec import ModelOptions, WorldOptions
from holdfast.execute.trial import run_trial
from holdfast.model.observation import Observation
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import Spec
from holdfast.model.task import Task
from holdfast.model.trace import TraceEvent
from holdfast.plan import RunOptions, build_control_trial
from holdfast.planes.http.trust import TRUST_VARIABLES
from holdfast.plugins import get_fault_traits
from holdfast.processes.startable import make_install_hint
from holdfast.reading.bash_syntax import explain_bash_only
from holdfast.report.safe import shorten
from holdfast.report.terminal.diagnosis import AskedAgent, CallsSeen, DoctorFinding
from holdfast.report.wording import GATEWAY_VARIABLES, NOT_THROUGH_GATEWAY, format_count
from holdfast.runner.job import read_world_secrets

ANSWER_WIDTH = 200
"""Characters of the answer that are shown."""
LINES_SHOWN = 5
"""Lines of output that are shown if the agent did not start."""
TARGETS_SHOWN = 20
"""Targets listed per plane."""
_REFUSED = "certificate_refused"


async def ask_agent(spec: Spec, environ: Mapping[str, str], models: ModelOptions) -> AskedAgent:
    """Start the agent, send it the first prompt and stop it."""
    probes = (Task((probe,), "probe") for rule in spec.invariants for probe in rule.probes)
    task = next(iter((*spec.tasks, *probes)), None)
    if task is None:
        raise UsageError(
            f"{spec.path} has no prompt to send", code="nothing-to-ask", hint="add golden_prompts: or task:"
        )
    # The simulated user is left out: the first turn shows all that the doctor needs.
    trial = build_control_trial(spec, replace(task.plain, user=UNSET), spec.params[0])
    try:
        world = WorldOptions(secrets=read_world_secrets(spec, RunOptions(), environ))
        site = await open_site(spec, environ=environ, concurrency=1, models=models, world=world)
        try:
            observation = await run_trial(site, trial)
        finally:
            await site.close()
    except AgentUnavailable as gone:
        finding = DoctorFinding("agent", "not", gone.code, str(gone), gone.hint or "", 4 if gone.config else 3)
        # the last lines that it printed before Holdfast gave up on it
        notes = tuple([f"it printed: {line}" for line in gone.body.splitlines()[-LINES_SHOWN:] if line.strip()])
        return AskedAgent(trial.task.prompt, findings=(finding,), notes=notes)
    except SpecError as wrong:
        findings = tuple([DoctorFinding("agent", "not", one.code, one.message, one.hint, 4) for one in wrong.problems])
        return AskedAgent(trial.task.prompt, findings=findings)
    return describe_trial(spec, models, trial.task.prompt, observation, site.targets)


def describe_trial(
    spec: Spec, models: ModelOptions, prompt: str, observation: Observation, targets: Sequence[str] = ()
) -> AskedAgent:
    """Return the findings of the one trial."""
    last = observation.turns[-1] if observation.turns else None
    calls = count_calls(observation.trace)
    findings = (
        _check_answer(observation, f"holdfast verify -c {shlex.quote(spec.path)}"),
        *_find_rejected_certificates(observation.trace),
        *_check_gateway(spec, observation),
        *_find_missing_programs(observation),
        *([DoctorFinding("tools", "ok", "tools-listed", ", ".join(targets))] if targets else []),
        *_check_planes(calls, list_watched_planes(spec, models)),
        *check_waits(spec, observation.trace),
    )
    return AskedAgent(
        prompt,
        "error" if observation.error else observation.ending,
        shorten((last and last.text) or "", ANSWER_WIDTH),
        sum(turn.latency_ms for turn in observation.turns),
        calls,
        findings,
        tuple(dict.fromkeys(observation.notes)),
    )


def _check_answer(observation: Observation, verify: str) -> DoctorFinding:
    if observation.error:
        fix = f"this is not the agent's fault: fix the cause, then run {verify}"
        return DoctorFinding("answer", "not", "harness-error", observation.error, fix, 3)
    if observation.ending != "answered":
        detail = next((turn.detail for turn in observation.turns if turn.ending != "answered"), "")
        why = f"it did not answer in a calm trial: {observation.ending}" + (f" ({detail})" if detail else "")
        fix = f"make the agent answer without faults first; {verify} sends the prompt again"
        return DoctorFinding("answer", "not", "not-answered", why, fix, 3)
    latency_ms = sum(turn.latency_ms for turn in observation.turns)
    text = observation.turns[-1].text or ""
    if not text.strip():
        fix = "check the agent's output and agent.response_path; an empty answer proves no rule"
        why = f"it answered with an empty text ({latency_ms:.0f} ms)"
        return DoctorFinding("answer", "unproven", "answer-empty", why, fix)
    return DoctorFinding("answer", "ok", "answered", f"{shorten(text, ANSWER_WIDTH)} ({latency_ms:.0f} ms)")


def _find_missing_programs(observation: Observation) -> Iterator[DoctorFinding]:
    """Yield a finding for each program that a rule runs and that the sandbox lacked before the agent started."""
    for name in observation.missing_programs:
        fix = explain_bash_only(name) or (
            make_install_hint(name)
            + "or install it in the sandbox with setup; unless the agent installs it, the rule ends in an error"
        )
        why = "a rule runs it, but the sandbox does not have it"
        yield DoctorFinding(f"program {name}", "unproven", "program-missing", why, fix)


def _check_gateway(spec: Spec, observation: Observation) -> Iterator[DoctorFinding]:
    """Yield a finding if the agent answered without the gateway: no fault reached it."""
    if spec.agent.gateway and not observation.trace and not observation.error:
        yield DoctorFinding("agent.gateway", "not", "gateway-bypassed", NOT_THROUGH_GATEWAY, GATEWAY_VARIABLES, 3)


def _find_rejected_certificates(trace: Iterable[TraceEvent]) -> Iterator[DoctorFinding]:
    hosts = dict.fromkeys(get_target(event) for event in trace if event.error_type == _REFUSED)
    for host in hosts:
        why = "a client rejected Holdfast's certificate, so its requests to this host were not seen"
        fix = f"make the client trust the certificate file in one of these variables: {', '.join(TRUST_VARIABLES)}"
        yield DoctorFinding(f"tls to {host}", "not", "certificate-refused", why, fix, 3)


# -- what was called ------------------------------------------------------------------------------
def get_target(event: TraceEvent) -> str:
    """Return the tool, model or URL of a call; a URL without its query, which may hold a key."""
    return event.tool.partition(" ")[2].partition("?")[0] if event.plane == "http" else event.tool


def count_calls(trace: Iterable[TraceEvent]) -> tuple[CallsSeen, ...]:
    """Count the calls per plane and target, in order of first use."""
    groups: dict[tuple[str, str], list[TraceEvent]] = {}
    for event in trace:
        if event.phase != "declared" and event.error_type != _REFUSED:
            groups.setdefault((event.plane, get_target(event)), []).append(event)
    return tuple([_count_calls(plane, name, events) for (plane, name), events in groups.items()])


def _count_calls(plane: str, name: str, events: Sequence[TraceEvent]) -> CallsSeen:
    retries = sum(event.retry > 0 for event in events)
    tokens = sum(event.tokens for event in events)
    return CallsSeen(plane, name, len(events) - retries, retries, tokens)


def list_watched_planes(spec: Spec, models: ModelOptions) -> tuple[str, ...]:
    """Return the planes on which Holdfast can see this agent's calls."""
    agent = spec.agent
    mcp = ("mcp",) if agent.mcp_config is not None else ()
    if agent.launched or agent.gateway:
        return ("llm", "tool_result", "http", *mcp)
    if not agent.is_python:
        return ()
    if not needs_planes(spec, models):
        return ("tool", "llm") if agent.llm else ("tool",)
    tools = ("tool_result",) if spec.tools_on_wire else ("tool",)
    return (*tools, "llm", *(("http",) if needs_web_plane(spec) else ()), *mcp)


def _check_planes(calls: Sequence[CallsSeen], planes: Sequence[str]) -> Iterator[DoctorFinding]:
    if not planes:
        why = "not seen: Holdfast did not start this agent, and the agent does not use the gateway"
        yield DoctorFinding("calls", "n/a", "calls-unseen", why)
    for plane in dict.fromkeys((*planes, *[one.plane for one in calls])):
        here = [one for one in calls if one.plane == plane]
        if not here:
            yield DoctorFinding(plane, "n/a", "calls-none", "0 calls")
        for one in here[:TARGETS_SHOWN]:
            yield DoctorFinding(f"{plane} {one.target}", "ok", "calls-seen", format_counts(one))
        if len(here) > TARGETS_SHOWN:
            more = format_count(len(here) - TARGETS_SHOWN, "more target")
            yield DoctorFinding(plane, "ok", "calls-seen", f"and {more}")


def format_counts(one: CallsSeen) -> str:
    """`3 calls, 1 retry, 412 tokens`."""
    retries = "1 retry" if one.retries == 1 else f"{one.retries} retries"
    parts = [format_count(one.calls, "call"), *([retries] if one.retries else [])]
    return ", ".join([*parts, *([f"{one.tokens:,} tokens"] if one.tokens else [])])


# -- waits -----------------------------------------------------------------------------------------
_UNSEEN = "did not call it for this prompt: the cell may be unproven"
_NOT_WATCHED = "requests to services are not watched here; a run shows whether the fault is met"


def check_waits(spec: Spec, trace: Sequence[TraceEvent]) -> Iterator[DoctorFinding]:
    """Yield a finding for each call that a scenario's faults wait for; faults in the prompt or the answer wait for
    none.
    """
    if spec.agent.simulate == "answer":
        return
    for scenario in spec.scenarios:
        reported = set()
        for fault in scenario.injections:
            finding = _check_wait(scenario, fault, spec, trace)
            if finding is not None and finding not in reported:
                reported.add(finding)
                yield finding


def _check_wait(scenario: Scenario, fault: Injection, spec: Spec, trace: Sequence[TraceEvent]) -> DoctorFinding | None:
    if fault.plane == "world" or (fault.plane == "context" and fault.target == "input"):
        return None
    route = f"{scenario.name} waits for {_format_awaited(fault)}"
    if fault.plane == "service":
        return DoctorFinding(route, "n/a", "target-unwatched", _NOT_WATCHED)
    calls = _count_matching(fault, spec, trace)
    schedule = fault.schedule
    first = schedule.on_call or (schedule.after_calls or 0) + (schedule.every or 1)
    if calls >= first:
        times = f" {calls} times" if calls > 1 else ""
        return DoctorFinding(route, "ok", "target-called", f"the agent called it{times}")
    fix = f"use a prompt that makes the agent call {_format_awaited(fault)}, or check the fault's target"
    if not calls:
        return DoctorFinding(route, "unproven", "target-not-called", f"the agent {_UNSEEN}", fix)
    calls_made = format_count(calls, "call")
    why = f"the agent made {calls_made}, but the fault waits for call {first}: the cell may be unproven"
    fix = "use a prompt that takes more calls, or let the fault fire earlier"
    return DoctorFinding(route, "unproven", "target-called-too-rarely", why, fix)


def _count_matching(fault: Injection, spec: Spec, trace: Sequence[TraceEvent]) -> int:
    """Return how many of the calls the fault could act on, ignoring probability and `match`."""
    context = build_context("waiting", fault)
    own_functions = spec.agent.is_python and not spec.tools_on_wire
    listing = fault.plane == "mcp" and get_fault_traits(fault.plane, fault.mode).on_listings
    count = 0
    for event in trace:
        if event.phase == "declared" or (event.plane == "tool_result" and own_functions):
            # A declared call has no result yet. Faults on a Python function act in the function, not in the traffic.
            continue
        plane = "mcp_list" if listing and event.plane == "mcp" else event.plane
        name = event.tool.partition(" ")[2] if plane == "http" else event.tool
        count += context.injector.can_affect(plane, name)
    return count


def _format_awaited(fault: Injection) -> str:
    if fault.plane == "llm":
        return "the model"
    url = fault.target if fault.plane == "http" else fault.match_url
    if url is not None:
        return url
    return "any tool" if fault.target in ("", "*") else fault.target
