"""Which faults of a spec wait at something that the agent has called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.doctor.probe_site import trip_of
from holdfast.model.spec import Injection, Scenario, Spec
from holdfast.model.trace import TraceEvent
from holdfast.plugins import fault_traits
from holdfast.report.diagnosis import DoctorFinding
from holdfast.report.wording import plural

_UNSEEN = "did not call it in this prompt: the cell may be unproven"

_NOT_WATCHED = "what the agent asks of services is not watched here: a run tells whether the fault was met"


def waits(spec: Spec, trace: Sequence[TraceEvent]) -> Iterator[DoctorFinding]:
    """A line for each scenario and what it waits for; those on the prompt or on the answer wait for no call."""
    if spec.agent.simulate == "answer":
        return
    for scenario in spec.scenarios:
        told = set()
        for fault in scenario.injections:
            found = _waiting(scenario, fault, spec, trace)
            if found is not None and found not in told:
                told.add(found)
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
        count += context.faces(plane, name)
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
