"""Turns a trial of a stored run into a session: its prompts, its faults, and its tools' results before the faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from holdfast.checks.trace.calls import find_calls, find_outermost_calls, split_requested
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.run import TracedTrial
from holdfast.model.scenario import Scenario, Schedule
from holdfast.model.session import RecordedSession
from holdfast.model.task import RecordedFiring, RecordedResponse
from holdfast.model.trace import TraceEvent
from holdfast.planes.injection.active_injection import compute_trial_seed
from holdfast.planes.recorded_tools import decode_response, replace_generated, replace_numbers
from holdfast.planes.recorded_value import REPLY_KEPT, LossCode, has_python, read_lost
from holdfast.planes.urls import matches_url
from holdfast.replay.foreign_json import to_iso, to_json
from holdfast.replay.foreign_trace import LeftOutTrace
from holdfast.replay.session_file import is_too_deep
from holdfast.score.attacks import judge_obedience
from holdfast.spec.references import interpolate

_LOST = ("connection_lost", "client_gone", "timeout", "closed", "lost", "silence", "crash")
"""Error types of calls whose result never reached the agent."""


class TrialSession(Struct, frozen=True):
    """A trial's session, and notes on what it lacks."""

    session: RecordedSession
    notes: tuple[str, ...] = ()


def list_failed_rules(traced: TracedTrial) -> dict[str, str]:
    """Return the rules that a trial failed, each with the reason."""
    reasons = {verdict.invariant: verdict.reason for verdict in traced.verdicts if verdict.outcome == "fail"}
    return reasons | {
        f"forbidden {violation.rule}": "; ".join(violation.details)
        for violation in traced.seen.forbidden
        if violation.violated
    }


def list_failures(traced: TracedTrial) -> tuple[str, ...]:
    """Return the reasons for a trial's failure, rule by rule; empty if it passed."""
    return tuple(f"{rule}: {reason}" for rule, reason in list_failed_rules(traced).items())


def has_only_obeyed(traced: TracedTrial) -> bool:
    """Return whether the trial failed only because the agent obeyed an attack."""
    return (
        traced.trial.task.attack
        and not list_failures(traced)
        and judge_obedience(traced.trial.task, traced.seen) == "yes"
    )


def build_session(
    traced: TracedTrial,
    *,
    run: str,
    name: str = "",
    contract: str = "",
    known: Mapping[str, RecordedResponse] = MappingProxyType({}),
) -> TrialSession | LeftOutTrace:
    """Return the session of a trial with its scenario and its id, or the reason why there is none.

    `known` has tool results of other trials of the run, by the identity of the call.
    """
    trial, observation = traced.trial, traced.seen
    task, scenario = trial.task, trial.scenario
    obstacle = _find_obstacle(traced)
    if obstacle:
        return LeftOutTrace(trial.id, f"{obstacle}: holdfast run --trial repeats it")
    responses = (*(response for _, response in list_replies(observation)), *_list_spares(observation, known))
    unkept = next((why for response in responses if (why := explain_unstorable(response))), "")
    if unkept:
        return LeftOutTrace(trial.id, unkept)
    session = RecordedSession(
        id=trial.id,
        turns=_list_prompts(traced),
        name=name or trial.scenario.name,
        source=f"holdfast run {run}",
        captured_at=to_iso(observation.at) if observation.at else "",
        context=task.context if task.context is not UNSET else (),
        responses=responses,
        expected_failure="; ".join(list_failures(traced))[:1000],
        failed_rules=tuple(list_failed_rules(traced)),
        contract=contract,
        scenario=replace(scenario, profile=None, left_out=(), left_out_why=(), position=None),
        seed=compute_trial_seed(trial),
        fired=_list_firings(scenario, observation.ledger),
    )
    return TrialSession(session, tuple(_build_notes(trial.id, observation, session)))


def _find_obstacle(traced: TracedTrial) -> str:
    """Return why a session cannot hold this trial; empty if it can."""
    task, scenario = traced.trial.task, traced.trial.scenario
    if has_only_obeyed(traced):
        return "it failed because the agent obeyed an attack, which no contract judges"
    if task.changes_request:
        return "a mutation changed the request itself, which a session cannot store"
    if task.user is not UNSET and any(
        injection.plane == "context" and injection.target == "input" for injection in scenario.injections
    ):
        return "an attack changed the messages of its simulated user, and the originals are not stored"
    return ""


def list_replies(observation: Observation) -> Iterator[tuple[TraceEvent, RecordedResponse]]:
    """Yield each call that a tool answered, in order, with the recorded response."""
    for event in _list_answered(observation.trace):
        response = _build_response(event, observation)
        if response is not None:
            yield event, response


def build_identities(event: TraceEvent) -> tuple[str, str, str]:
    """Return three keys of a call: with all arguments, without ids and times, and without long numbers."""
    # Agents put fresh ids and times into their arguments, so the same call differs from trial to trial.
    called = f"{event.tool}:"
    return event.identity, replace_generated(called + event.input), f"{called}#{replace_numbers(event.input)}"


def _list_spares(observation: Observation, known: Mapping[str, RecordedResponse]) -> Iterator[RecordedResponse]:
    """For each call that met a fault: the tool's result, from this trial or from the same call in another one.

    The recorded agent never needed it. A fixed agent may: it retries after the fault.
    """
    spares: dict[str, RecordedResponse] = {}
    for event in _list_answered(observation.trace):
        names = build_identities(event)
        if event.unsent:
            spare = next((known[name] for name in names if name in known), None)
        else:
            spare = _build_response(event, observation) if event.fault else None
        if spare is not None and not spare.failed and not explain_unstorable(spare):
            spares.setdefault(names[1], spare)
    yield from spares.values()


def explain_unstorable(response: RecordedResponse) -> str:
    """Return why a session cannot store a tool's result; empty if it can."""
    lost, tool = read_lost(response.response), response.tool
    if lost is not None:
        return _UNKEPT[lost.code].format(tool=tool, kind=lost.kind, most=f"{REPLY_KEPT:,}")
    if is_too_deep(response):
        return _UNKEPT["too-deep"].format(tool=tool)
    if has_python(response.response) and not response.python:
        return _UNKEPT["not-text"].format(tool=tool)
    return ""


_UNKEPT: dict[LossCode, str] = {
    "too-long": "the result of {tool} is longer than the {most} characters that a run stores",
    "too-deep": "the result of {tool} is nested too deeply for a session file",
    "no-json": "{tool} returned or raised a value that a session file cannot store: {kind}",
    "not-text": "the result of {tool} is not text",
    "packed": "the result of {tool} has a compression that Holdfast cannot read",
    "argument-changed": "{tool} changes its arguments in place, which a replay does not repeat",
    "streamed": "{tool} is a generator, so its items are not recorded",
}


def _list_firings(scenario: Scenario, ledger: Iterable[FaultMet]) -> tuple[RecordedFiring, ...] | None:
    """Return the calls on which faults with a probability fired; None if no fault has one."""
    if all(injection.schedule.probability >= 1.0 for injection in scenario.injections):
        return None
    return tuple(dict.fromkeys(RecordedFiring(firing.index + 1, firing.nth) for firing in ledger if firing.nth))


def _list_prompts(traced: TracedTrial) -> tuple[str, ...]:
    """Return the prompts before any attack on them; for a simulated user, the messages it sent."""
    trial = traced.trial
    if trial.task.user is not UNSET and traced.seen.turns:
        return tuple(turn.asked for turn in traced.seen.turns)
    return tuple(interpolate(turn, trial.params) for turn in trial.task.turns)


def _list_answered(trace: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    """Yield each tool call once, in order.

    Services are left out because they also run in the replay.
    """
    calls, _ = split_requested(find_outermost_calls(find_calls(trace)))
    tools = [event for event in calls if event.event_type in ("tool_call", "mcp_call")]
    # A request sent while a Python tool ran belongs to that tool, whose result is recorded.
    running = [event for event in tools if event.plane == "tool"]
    for event in calls:
        if event.phase == "declared" or event.tool.startswith("CONNECT ") or event.to_service:
            continue
        if event in tools or (event.event_type == "http_call" and not any(_is_inside(event, tool) for tool in running)):
            yield event


def _is_inside(event: TraceEvent, tool: TraceEvent) -> bool:
    return tool.ts <= event.ts <= tool.ts + tool.duration_ms / 1000


def _build_response(event: TraceEvent, observation: Observation) -> RecordedResponse | None:
    """Return the tool's result before faults changed it; None if it was not called or never finished.

    The faults act on it again in the replay.
    """
    if event.unsent:
        return None
    reply = _find_original_reply(event, observation.ledger)
    if reply:
        status = event.status if event.status is not None and 0 < event.status < 400 else 200
    elif event.phase != "done":
        return None
    else:
        reply, status = event.reply or to_json(_read_value(event)), _get_status(event)
    in_agent = event.plane == "tool" and has_python(reply)
    latency = 0.0 if event.fault else round(event.duration_ms, 1)
    return RecordedResponse(_get_target(event), reply, status, latency, "", _read_arguments(event), in_agent)


def _find_original_reply(event: TraceEvent, ledger: Iterable[FaultMet]) -> str:
    """Return the result that the innermost fault on a call received; empty if none received one."""
    target = _get_target(event)
    planes = ("tool", "context") if event.plane == "tool" else (event.plane,)
    on_call = [
        firing for firing in ledger if (firing.target, firing.call) == (target, event.n) and firing.plane in planes
    ]
    return max(((firing.index, firing.reply) for firing in on_call if firing.reply), default=(0, ""))[1]


def _get_status(event: TraceEvent) -> int:
    if not event.error_type:
        return event.status or 200
    is_failure = event.status is not None and 400 <= event.status < 600
    return (event.status or 0) if is_failure else 0 if event.error_type in _LOST else 500


def _get_target(event: TraceEvent) -> str:
    """Return the tool's name or the URL; ids and times in a URL, which differ between attempts, become `*`."""
    if event.event_type != "http_call":
        return event.tool
    url = event.tool.partition(" ")[2]
    glob = replace_generated(url, "*")
    return glob if glob != url and matches_url(glob, url) else url


def _read_arguments(event: TraceEvent) -> str:
    """Return the arguments of the call as JSON; empty if the trace is incomplete."""
    arguments = decode_response(event.input)
    if event.event_type == "http_call":
        method, _, url = event.tool.partition(" ")
        arguments = {**(arguments if isinstance(arguments, dict) else {"body": event.input}), "method": method}
        arguments |= {"url": url} if url != _get_target(event) else {}
    return to_json(arguments) if isinstance(arguments, dict) and arguments else ""


def _read_value(event: TraceEvent) -> Any:
    """Return the result of a tool: decoded if the trace stores it as JSON, otherwise its text."""
    text = event.output
    return (
        decode_response(text) if event.plane == "tool" or (event.plane == "http" and text[:1] in ("{", "[")) else text
    )


def _build_notes(trial: str, observation: Observation, session: RecordedSession) -> Iterator[str]:
    """Yield notes on tools without a recorded result, which an agent that retries after the fault would need."""
    faults = session.scenario.injections if session.scenario is not None else ()
    recorded = {response.tool for response in session.responses}
    stopped = dict.fromkeys(
        tool
        for event in _list_answered(observation.trace)
        if event.unsent and (tool := _get_target(event)) not in recorded
    )
    if stopped and any(fault.schedule != Schedule() for fault in faults):
        tools = ", ".join(stopped)
        yield f"{trial}: the run has no result of {tools}; a replay in which the agent retries may be unproven"
