"""The agent's part of a diagnosis: asked once in calm, what it called, and which faults wait where it calls."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.doctor.probe_site import trip_of
from holdfast.errors import AgentUnavailable, SpecError, UsageError
from holdfast.execute.open_site import open_site
from holdfast.execute.options import ModelOptions, WorldOptions
from holdfast.execute.plane_needs import needs_planes, on_web
from holdfast.execute.trial import run_trial
from holdfast.model.observation import Observation
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import Spec
from holdfast.model.task import Task
from holdfast.model.trace import TraceEvent
from holdfast.plan import RunOptions, control_trial
from holdfast.planes.http.trust import TRUST_VARIABLES
from holdfast.plugins import fault_traits
from holdfast.processes.startable import install_hint
from holdfast.report.diagnosis import AskedAgent, CallsSeen, DoctorFinding
from holdfast.report.safe import shorten
from holdfast.report.wording import GATEWAY_VARIABLES, NOT_THROUGH_GATEWAY, plural
from holdfast.runner.job import world_secrets

ANSWER_KEPT = 200
LINES_SHOWN = 5
TARGETS_SHOWN = 20
"""Targets of one plane that are listed."""
_REFUSED = "certificate_refused"


async def ask_agent(spec: Spec, environ: Mapping[str, str], models: ModelOptions) -> AskedAgent:
    """Opens the agent, asks it the first prompt, and closes it again."""
    probes = (Task((probe,), "probe") for rule in spec.invariants for probe in rule.probes)
    task = next(iter((*spec.tasks, *probes)), None)
    if task is None:
        raise UsageError(f"{spec.path} has nothing to ask", code="nothing-to-ask", hint="add golden_prompts: or task:")
    # Without its simulated user, who would add nothing.
    trial = control_trial(spec, replace(task.plain, user=UNSET), spec.params[0])
    try:
        world = WorldOptions(secrets=world_secrets(spec, RunOptions(), environ))
        site = await open_site(spec, environ=environ, concurrency=1, models=models, world=world)
        try:
            seen = await run_trial(site, trial)
        finally:
            await site.close()
    except AgentUnavailable as gone:
        fix = gone.hint or f"see what it printed: {_verify(spec)}"
        found = DoctorFinding("agent", "not", str(gone), fix, 4 if gone.config else 3)
        return AskedAgent(trial.task.prompt, findings=(found,), notes=_printed(gone.body))
    except SpecError as wrong:
        findings = tuple([DoctorFinding("agent", "not", one.message, one.hint, 4) for one in wrong.problems])
        return AskedAgent(trial.task.prompt, findings=findings)
    return describe_trial(spec, models, trial.task.prompt, seen, site.targets)


def _printed(body: str) -> tuple[str, ...]:
    """The last that an agent said before it was given up."""
    return tuple([f"it said: {line}" for line in body.splitlines()[-LINES_SHOWN:] if line.strip()])


def describe_trial(
    spec: Spec, models: ModelOptions, prompt: str, seen: Observation, targets: Sequence[str] = ()
) -> AskedAgent:
    """What the one trial shows."""
    last = seen.turns[-1] if seen.turns else None
    calls = tally(seen.trace)
    findings = (
        _answered(seen, _verify(spec)),
        *_certificates(seen.trace),
        *_through_gateway(spec, seen),
        *_programs(seen),
        *([DoctorFinding("tools", "ok", ", ".join(targets))] if targets else []),
        *_by_plane(calls, watched(spec, models)),
        *waits(spec, seen.trace),
    )
    return AskedAgent(
        prompt,
        "error" if seen.error else seen.ending,
        shorten((last and last.text) or "", ANSWER_KEPT),
        sum(turn.latency_ms for turn in seen.turns),
        calls,
        findings,
        tuple(dict.fromkeys(seen.notes)),
    )


def _verify(spec: Spec) -> str:
    return f"holdfast verify -c {shlex.quote(spec.path)}"


def _answered(seen: Observation, verify: str) -> DoctorFinding:
    if seen.error:
        fix = f"the agent is not to blame: fix the cause, then run {verify}"
        return DoctorFinding("answer", "not", seen.error, fix, 3)
    if seen.ending != "answered":
        detail = next((turn.detail for turn in seen.turns if turn.ending != "answered"), "")
        why = f"it ended badly in calm: {seen.ending}" + (f" ({detail})" if detail else "")
        return DoctorFinding("answer", "not", why, f"let it answer first; {verify} asks it again", 3)
    took = sum(turn.latency_ms for turn in seen.turns)
    text = seen.turns[-1].text or ""
    if not text.strip():
        fix = "check what it prints or returns, and agent.response_path: an empty answer proves no rule"
        return DoctorFinding("answer", "unproven", f"it answered with an empty text ({took:.0f} ms)", fix)
    return DoctorFinding("answer", "ok", f"{shorten(text, ANSWER_KEPT)} ({took:.0f} ms)")


def _programs(seen: Observation) -> Iterator[DoctorFinding]:
    """Programs of rules, tried in the world before the agent started."""
    for name in seen.missing_programs:
        fix = install_hint(name) + "or put it into the world with setup; unless the agent does, its rule is an error"
        yield DoctorFinding(f"program {name}", "unproven", "a rule runs it, and this world does not have it", fix)


def _through_gateway(spec: Spec, seen: Observation) -> Iterator[DoctorFinding]:
    """An agent that was started without the variables answers as well as ever, and meets nothing."""
    if spec.agent.gateway and not seen.trace and not seen.error:
        yield DoctorFinding("agent.gateway", "not", NOT_THROUGH_GATEWAY, GATEWAY_VARIABLES, 3)


def _certificates(trace: Iterable[TraceEvent]) -> Iterator[DoctorFinding]:
    hosts = dict.fromkeys(target(event) for event in trace if event.error_type == _REFUSED)
    for host in hosts:
        why = "a client refused our certificate: its requests there were not seen"
        fix = f"let it trust what one of these names: {', '.join(TRUST_VARIABLES)}"
        yield DoctorFinding(f"tls to {host}", "not", why, fix, 3)


# -- what was called ------------------------------------------------------------------------------
def target(event: TraceEvent) -> str:
    """What a call was to; of an HTTP call the URL without its query, which may hold a key."""
    return event.tool.partition(" ")[2].partition("?")[0] if event.plane == "http" else event.tool


def tally(trace: Iterable[TraceEvent]) -> tuple[CallsSeen, ...]:
    """Calls per plane and target, in the order in which they were first seen."""
    found: dict[tuple[str, str], list[TraceEvent]] = {}
    for event in trace:
        if event.phase != "declared" and event.error_type != _REFUSED:
            found.setdefault((event.plane, target(event)), []).append(event)
    return tuple([_called(plane, name, events) for (plane, name), events in found.items()])


def _called(plane: str, name: str, events: Sequence[TraceEvent]) -> CallsSeen:
    retries = sum(event.retry > 0 for event in events)
    tokens = sum(event.tokens for event in events)
    return CallsSeen(plane, name, len(events) - retries, retries, tokens)


def watched(spec: Spec, models: ModelOptions) -> tuple[str, ...]:
    """The planes on which this agent's calls can be seen."""
    agent = spec.agent
    mcp = ("mcp",) if agent.mcp_config is not None else ()
    if agent.launched or agent.gateway:
        return ("llm", "tool_result", "http", *mcp)
    if not agent.in_python:
        return ()
    if not needs_planes(spec, models):
        return ("tool", "llm") if agent.llm else ("tool",)
    tools = ("tool_result",) if spec.tools_on_wire else ("tool",)
    return (*tools, "llm", *(("http",) if on_web(spec) else ()), *mcp)


def _by_plane(calls: Sequence[CallsSeen], planes: Sequence[str]) -> Iterator[DoctorFinding]:
    if not planes:
        yield DoctorFinding("calls", "n/a", "not seen: Holdfast did not start this agent, and it is behind no gateway")
    for plane in dict.fromkeys((*planes, *[one.plane for one in calls])):
        here = [one for one in calls if one.plane == plane]
        if not here:
            yield DoctorFinding(plane, "n/a", "0 calls")
        for one in here[:TARGETS_SHOWN]:
            yield DoctorFinding(f"{plane} {one.target}", "ok", counted(one))
        if len(here) > TARGETS_SHOWN:
            yield DoctorFinding(plane, "ok", f"and {plural(len(here) - TARGETS_SHOWN, 'more target')}")


def counted(one: CallsSeen) -> str:
    """`3 calls, 1 retry, 412 tokens`."""
    retries = "1 retry" if one.retries == 1 else f"{one.retries} retries"
    parts = [plural(one.calls, "call"), *([retries] if one.retries else [])]
    return ", ".join([*parts, *([f"{one.tokens:,} tokens"] if one.tokens else [])])


# -- waits -----------------------------------------------------------------------------------------
_UNSEEN = "did not call it in this prompt: the cell may be unproven"

_NOT_WATCHED = "what the agent asks of services is not watched here: a run tells whether the fault was met"


def waits(spec: Spec, trace: Sequence[TraceEvent]) -> Iterator[DoctorFinding]:
    """A line for each scenario and what it waits for; those on the prompt or on the answer wait for no call."""
    if spec.agent.simulate == "answer":
        return
    for scenario in spec.scenarios:
        reported = set()
        for fault in scenario.injections:
            found = _waiting(scenario, fault, spec, trace)
            if found is not None and found not in reported:
                reported.add(found)
                yield found


def _waiting(scenario: Scenario, fault: Injection, spec: Spec, trace: Sequence[TraceEvent]) -> DoctorFinding | None:
    if fault.plane == "world" or (fault.plane == "context" and fault.target == "input"):
        return None
    if fault.plane == "service":
        return DoctorFinding(f"{scenario.name} waits for {_awaited(fault)}", "n/a", _NOT_WATCHED)
    seen = _met_by(fault, spec, trace)
    route = f"{scenario.name} waits for {_awaited(fault)}"
    first = _first_due(fault)
    if seen >= first:
        return DoctorFinding(route, "ok", "the agent called it" + (f" {seen} times" if seen > 1 else ""))
    fix = f"ask something that makes the agent call {_awaited(fault)}, or check the fault's target"
    if not seen:
        return DoctorFinding(route, "unproven", f"the agent {_UNSEEN}", fix)
    why = f"the agent made {plural(seen, 'call')}, and the fault waits for call {first}: the cell may be unproven"
    return DoctorFinding(route, "unproven", why, "ask something that takes more calls, or let the fault fire earlier")


def _met_by(fault: Injection, spec: Spec, trace: Sequence[TraceEvent]) -> int:
    """How many of the calls the fault could act on, luck and `match` aside."""
    context = trip_of("waiting", fault)
    own_functions = spec.agent.in_python and not spec.tools_on_wire
    listing = fault.plane == "mcp" and fault_traits(fault.plane, fault.mode).on_listings
    count = 0
    for event in trace:
        if event.phase == "declared" or (event.plane == "tool_result" and own_functions):
            continue  # nothing came back; or the function itself is where its faults act
        plane = "mcp_list" if listing and event.plane == "mcp" else event.plane
        name = event.tool.partition(" ")[2] if plane == "http" else event.tool
        count += context.injector.affects(plane, name)
    return count


def _first_due(fault: Injection) -> int:
    """The first call on which the schedule lets it fire."""
    plan = fault.schedule
    return plan.on_call or (plan.after_calls or 0) + (plan.every or 1)


def _awaited(fault: Injection) -> str:
    if fault.plane == "llm":
        return "the model"
    url = fault.target if fault.plane == "http" else fault.match_url
    if url is not None:
        return url
    return "any tool" if fault.target in ("", "*") else fault.target
