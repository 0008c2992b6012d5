"""A trial of a stored run as a session: what was asked, in which weather, and what its tools gave without faults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from holdfast.checks.trace.calls import calls, outermost, split
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.run import TracedTrial
from holdfast.model.scenario import CALM, Scenario
from holdfast.model.session import RecordedSession
from holdfast.model.task import RecordedResponse
from holdfast.model.trace import TraceEvent
from holdfast.planes.luck import trial_seed
from holdfast.replay.foreign_json import as_json, iso
from holdfast.replay.foreign_trace import LeftOutTrace
from holdfast.replay.session_file import too_deep
from holdfast.score.obeyed import obeyed
from holdfast.spec.forms import CODE
from holdfast.spec.references import interpolate

CUT = "…"
_LOST = ("connection_lost", "client_gone", "timeout", "closed", "lost", "silence", "crash")
"""How planes name a call of whose end the agent heard nothing."""


class TrialSession(Struct, frozen=True):
    """A trial's session, and what of it could not be kept."""

    session: RecordedSession
    notes: tuple[str, ...] = ()


def failed_rules(traced: TracedTrial) -> dict[str, str]:
    """The rules that a trial failed, each with the reason."""
    found = {one.invariant: one.reason for one in traced.verdicts if one.outcome == "fail"}
    return found | {f"forbidden {one.rule}": "; ".join(one.details) for one in traced.seen.forbidden if one.violated}


def failures(traced: TracedTrial) -> tuple[str, ...]:
    """Why a trial failed, rule by rule; empty if it did not."""
    return tuple(f"{rule}: {reason}" for rule, reason in failed_rules(traced).items())


def only_obeyed(traced: TracedTrial) -> bool:
    """Whether nothing but an attack that got its way failed the trial."""
    return traced.trial.task.attack and not failures(traced) and obeyed(traced.trial.task, traced.seen) == "yes"


def trial_session(
    traced: TracedTrial,
    *,
    run: str,
    scenario: Scenario = CALM,
    name: str = "",
    contract: str = "",
    known: Mapping[str, RecordedResponse] = MappingProxyType({}),
) -> TrialSession | LeftOutTrace:
    """The session of a trial in its scenario. Its id is the trial's.

    `known` has what other trials of the run were given, by the identity of the call.
    """
    trial, seen = traced.trial, traced.seen
    again = "holdfast run --trial asks it again"
    if only_obeyed(traced):
        return LeftOutTrace(trial.id, f"it failed by an attack that was obeyed, which no contract judges: {again}")
    if trial.task.changes_request:
        return LeftOutTrace(trial.id, f"its request itself was changed, which no session holds: {again}")
    task = trial.task
    if task.user is not UNSET and any(one.plane == "context" and one.target == "input" for one in scenario.injections):
        return LeftOutTrace(trial.id, f"what its simulated user said was attacked on the way, and is not kept: {again}")
    responses = (*(one for _, one in given_replies(seen)), *_spares(seen, known))
    deep = next((one.tool for one in responses if too_deep(one)), "")
    if deep:
        return LeftOutTrace(trial.id, f"what {deep} answered is nested too deeply for a session file")
    session = RecordedSession(
        id=trial.id,
        turns=_asked(traced),
        name=name or trial.scenario,
        source=f"holdfast run {run}",
        captured_at=iso(seen.at) if seen.at else "",
        context=task.context if task.context is not UNSET else (),
        responses=responses,
        expected_failure="; ".join(failures(traced))[:1000],
        contract=contract,
        scenario=replace(scenario, name=trial.scenario, profile=None, left_out=(), left_out_why=(), position=None),
        seed=trial_seed(trial),
    )
    return TrialSession(session, tuple(_notes(trial.id, responses)))


def given_replies(seen: Observation) -> Iterator[tuple[TraceEvent, RecordedResponse]]:
    """Each call that a tool answered, in order, with what it gave."""
    for event in _answered(seen.trace):
        response = _response(event, seen)
        if response is not None:
            yield event, response


def _spares(seen: Observation, known: Mapping[str, RecordedResponse]) -> Iterator[RecordedResponse]:
    """For each call that a fault kept from its tool: what the tool gave to the same call in another trial of the run.

    The trial never needs it again. An agent that was fixed may: it tries once more, when the fault has passed.
    """
    stopped = dict.fromkeys(event.identity for event in _answered(seen.trace) if event.unsent)
    yield from (known[identity] for identity in stopped if identity in known)


def _asked(traced: TracedTrial) -> tuple[str, ...]:
    """What was asked, before the attacks on it, which are among the faults: of a simulated user, what it said then."""
    trial = traced.trial
    if trial.task.user is not UNSET and traced.seen.turns:
        return tuple(turn.asked for turn in traced.seen.turns)
    return tuple(interpolate(turn, trial.params) for turn in trial.task.turns)


def _answered(trace: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    """Each call of a tool once, in order; requests that a tool made are its own affair.

    A service of the trial's world is there in the replay, too, and answers for itself.
    """
    made, _ = split(outermost(calls(trace)))
    tools = [event for event in made if event.event_type in ("tool_call", "mcp_call")]
    at_work = [event for event in tools if event.plane == "tool"]
    for event in made:
        if event.phase == "declared" or event.tool.startswith("CONNECT ") or event.to_service:
            continue
        if event in tools or (event.event_type == "http_call" and not any(_inside(event, one) for one in at_work)):
            yield event


def _inside(event: TraceEvent, tool: TraceEvent) -> bool:
    return tool.ts <= event.ts <= tool.ts + tool.duration_ms / 1000


def _response(event: TraceEvent, seen: Observation) -> RecordedResponse | None:
    """What the tool gave before the faults, which act on it again. None if it was not asked, or never ended."""
    if event.unsent:
        return None
    target, reply = _target(event), _own_reply(event, seen.ledger)
    if reply:
        done = event.status if event.status is not None and 0 < event.status < 400 else 200
        return RecordedResponse(target, reply, done)
    if event.phase != "done":
        return None
    raises = event.raised if re.fullmatch(CODE, event.raised) else ""
    value = event.output.removeprefix(event.error_type).removeprefix(": ") if event.raised else _value(event)
    latency = 0.0 if event.fault else round(event.duration_ms, 1)
    return RecordedResponse(target, as_json(value), _status(event), latency, raises)


def _own_reply(event: TraceEvent, ledger: Iterable[FaultMet]) -> str:
    """What the innermost of the faults on a call was given; empty if none was given anything."""
    target = _target(event)
    planes = ("tool", "context") if event.plane == "tool" else (event.plane,)
    on_call = [one for one in ledger if (one.target, one.call) == (target, event.n) and one.plane in planes]
    return max(((one.index, one.reply) for one in on_call if one.reply), default=(0, ""))[1]


def _status(event: TraceEvent) -> int:
    if not event.error_type:
        return event.status or 200
    known = event.status is not None and 400 <= event.status < 600
    return (event.status or 0) if known else 0 if event.error_type in _LOST else 500


def _target(event: TraceEvent) -> str:
    """A request by its URL: an exact one is looked for before any pattern."""
    return event.tool.partition(" ")[2] if event.event_type == "http_call" else event.tool


def _value(event: TraceEvent) -> Any:
    """What a tool gave: a function's values and data of others were written as JSON, texts as they were."""
    text = event.output
    if event.is_text or event.plane not in ("tool", "http") or (event.plane == "http" and text[:1] not in ("{", "[")):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _notes(trial: str, responses: Iterable[RecordedResponse]) -> Iterator[str]:
    cut = dict.fromkeys(one.tool for one in responses if f" {CUT} " in one.response)
    if cut:
        yield f"{trial}: of what {', '.join(cut)} answered the run keeps 4,000 characters: put the rest in by hand"
