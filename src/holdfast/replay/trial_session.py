"""A trial of a stored run as a session: what was asked, what its tools gave, with what faults made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from holdfast.checks.trace.calls import calls, outermost, split
from holdfast.model.run import TracedTrial
from holdfast.model.session import RecordedSession
from holdfast.model.task import RecordedResponse
from holdfast.model.trace import TraceEvent
from holdfast.replay.foreign_json import as_json, iso
from holdfast.replay.foreign_trace import LeftOutTrace
from holdfast.replay.session_file import too_deep
from holdfast.score.obeyed import obeyed
from holdfast.spec.references import interpolate

CUT = "…"
_UNREACHED = re.compile(r"(?i)timeout|connection|connect|dropped|reset|closed|client_gone|cancelled|dns")


class TrialSession(Struct, frozen=True):
    """A trial's session, and what of it could not be kept."""

    session: RecordedSession
    notes: tuple[str, ...] = ()


def failures(traced: TracedTrial) -> tuple[str, ...]:
    """Why a trial failed, rule by rule; empty if it did not."""
    found = [f"{one.invariant}: {one.reason}" for one in traced.verdicts if one.outcome == "fail"]
    found += [f"forbidden {one.rule}: {'; '.join(one.details)}" for one in traced.seen.forbidden if one.violated]
    return tuple(found)


def only_obeyed(traced: TracedTrial) -> bool:
    """Whether nothing but an attack that got its way failed the trial."""
    return traced.trial.task.attack and not failures(traced) and obeyed(traced.trial.task, traced.seen) == "yes"


def trial_session(traced: TracedTrial, *, run: str, name: str = "", contract: str = "") -> TrialSession | LeftOutTrace:
    """The session of a trial. Its id is the trial's."""
    trial, seen = traced.trial, traced.seen
    if only_obeyed(traced):
        again = "holdfast run --trial asks it again"
        return LeftOutTrace(trial.id, f"it failed by an attack that was obeyed, which no contract judges: {again}")
    task = trial.task
    events = list(_answered(seen.trace))
    got = {(met.plane, met.target, met.call): met.got for met in seen.met}
    responses = tuple(_response(event, got.get((event.plane, event.tool, event.n), "")) for event in events)
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
    )
    return TrialSession(session, tuple(_notes(trial.id, events, seen.trace)))


def _asked(traced: TracedTrial) -> tuple[str, ...]:
    """What was asked: of a simulated user, what it said then."""
    trial = traced.trial
    if trial.task.user is not UNSET and traced.seen.turns:
        return tuple(turn.asked for turn in traced.seen.turns)
    return tuple(interpolate(turn, trial.params) for turn in trial.task.turns)


def _answered(trace: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    """Each call of a tool once, in order; requests that a tool made are its own affair."""
    made, _ = split(outermost(calls(trace)))
    tools = [event for event in made if event.event_type in ("tool_call", "mcp_call")]
    at_work = [event for event in tools if event.plane == "tool"]
    for event in made:
        if event.phase != "done" or event.tool.startswith("CONNECT "):
            continue
        if event in tools or (event.event_type == "http_call" and not any(_inside(event, one) for one in at_work)):
            yield event


def _inside(event: TraceEvent, tool: TraceEvent) -> bool:
    return tool.ts <= event.ts <= tool.ts + tool.duration_ms / 1000


def _response(event: TraceEvent, got: str) -> RecordedResponse:
    """What the agent got; where the trace has only that it failed, what the fault's entry says of it."""
    answer = _value(event)
    if answer in ("", None) and event.failed:
        answer = got.removeprefix("failed: ") or event.error_type
    return RecordedResponse(_target(event), as_json(answer), _status(event), round(event.duration_ms, 1))


def _status(event: TraceEvent) -> int:
    if event.status is not None:
        return event.status
    if not event.error_type:
        return 200
    return 0 if _UNREACHED.search(event.error_type) else 500


def _target(event: TraceEvent) -> str:
    """A request by its URL: an exact one is looked for before any pattern."""
    return event.tool.partition(" ")[2] if event.event_type == "http_call" else event.tool


def _value(event: TraceEvent) -> Any:
    """What a tool gave: a function's values and data of others were written as JSON, texts as they were."""
    text = event.output
    if event.plane != "tool" and text[:1] not in ("{", "["):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _notes(trial: str, events: Iterable[TraceEvent], trace: Iterable[TraceEvent]) -> Iterator[str]:
    cut = dict.fromkeys(event.tool for event in events if f" {CUT} " in event.output)
    if cut:
        yield f"{trial}: of what {', '.join(cut)} answered the run keeps 4,000 characters: put the rest in by hand"
    if any(event.event_type == "llm_call" and event.fault for event in trace):
        yield f"{trial}: faults of its model are not part of a session"
