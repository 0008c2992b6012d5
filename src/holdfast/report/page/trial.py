"""Everything about one trial: the conversation, calls with outputs, faults, evidence and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from shlex import join, quote
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import asdict

from holdfast.model.observation import Observation, Turn
from holdfast.model.run import Run, TracedTrial
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.model.world import AuditEvent, FileTexts
from holdfast.report import standards, wording
from holdfast.report.page.values import cut, fit_value, pick, shorten_value, to_utf16_span
from holdfast.score.run_totals import compute_spent
from holdfast.spec.references import interpolate
from holdfast.store.run_folders import format_name


class Bounds(NamedTuple):
    """The limits on the part of a trial in a document; the run's folder has the rest, and the page says so."""

    text: int = 200_000
    """Characters of one answer."""
    calls: int = 1_000
    events: int = 1_000
    """Events of an audit log, a ledger and similar lists."""
    room: int = 4_000_000
    """Characters of all calls, and of all events."""
    sent: int = 4_000_000
    """Characters of the input and the output of one call."""
    evidence: int = 0
    """Characters of the evidence of one rule, as JSON; 0: as much as `shorten_value` keeps."""


SERVED = Bounds()
"""The viewer sends one trial at a time."""
FILES, DIFFED = 500, 200_000
"""Files that the page gets, and characters of them that are compared."""
DEED = 500
"""Characters of an action's description; its ending follows."""
CONTROL = (
    "This is a control trial: the same prompt in calm, for comparison. No rule judges it, and it cannot be run alone."
)
T = TypeVar("T", TraceEvent, AuditEvent)


def build_trial(run: Run, traced: TracedTrial, again: str) -> dict[str, Any]:
    """Return a trial with an observation."""
    trial = traced.trial
    failed = trial.kind == "contract" and any(one.outcome == "fail" for one in traced.verdicts)
    described = describe_observation(run, traced.seen, traced.verdicts, places=wording.Places(run))
    return {
        **_build_head(trial),
        **described,
        "notes": [*_note_control(trial), *described["notes"]],
        "again": "" if trial.kind == "control" else again,
        "promote": f"holdfast promote {trial.id} {quote(format_name(Path(run.path)))}" if failed else "",
    }


def _build_head(trial: Trial) -> dict[str, Any]:
    return {
        "id": trial.id,
        "kind": trial.kind,
        "scenario": trial.scenario.name,
        "params": wording.format_params(trial.params),
        "column": wording.format_head(trial.scenario.name, trial.params),
        "replica": trial.replica,
        "seed": str(trial.seed),
        "task": shorten_value(trial.task),
    }


def describe_observation(
    run: Run,
    observation: Observation,
    verdicts: Sequence[Verdict] = (),
    bounds: Bounds = SERVED,
    *,
    places: wording.Places,
) -> dict[str, Any]:
    """Return the observation and verdicts of a trial. `places` maps rules to their positions in the spec."""
    audit = _take_first(observation.audit, bounds.events, bounds.room)
    return {
        **describe_exchange(observation, bounds),
        "outcome": _find_worst(verdicts),
        "verdicts": [_build_verdict(one, observation, run, places, bounds) for one in verdicts],
        "audit": [_build_audit_event(event, observation.at, bounds) for event in audit],
        "audit_left_out": len(observation.audit) - len(audit),
        "files": list_file_changes(observation.audit, bounds),
        "forbidden": [pick(one, "rule violated details error") for one in observation.forbidden],
        "evidence": {
            rule: {"data": _limit_evidence(one.data, bounds), "error": one.error}
            for rule, one in observation.evidence.items()
        },
        "recorded": [
            {**pick(one, "tool n call passed"), "known": one.is_known} for one in observation.recorded[: bounds.events]
        ],
        **pick(observation, "simulated concurrent attempts"),
        "started": observation.at or None,
        "duration_ms": round(observation.duration_ms, 1),
    }


def describe_exchange(observation: Observation, bounds: Bounds) -> dict[str, Any]:
    """Return the agent's questions and answers, with the calls and faults in between."""
    trace, ledger = _take_first(observation.trace, bounds.calls, bounds.room), observation.ledger
    used = compute_spent(observation.trace) if trace else None
    return {
        "ending": "error" if observation.error else observation.ending,
        "detail": cut(
            observation.error or next((turn.detail for turn in observation.turns if turn.detail), ""), bounds.text
        ),
        "turns": [_build_turn(turn, bounds.text) for turn in observation.turns[: bounds.events]],
        "faults": [
            {
                **pick(one, "plane target mode call retry effect would got change note"),
                "text": wording.format_fault(one),
            }
            for one in ledger[: bounds.events]
        ],
        "trace": [build_call(event, bounds.sent) for event in trace],
        "trace_left_out": len(observation.trace) - len(trace),
        "output": cut(observation.output, bounds.text),
        "notes": list(observation.notes),
        "standards": [str(one) for one in standards.list_for_faults(wording.filter_met(ledger))] if ledger else [],
        "canaries": sorted({word for met in ledger for word in met.canaries}) if ledger else [],
        "spent": asdict(used) if used else None,
    }


def build_running_trial(run: Run, trial: Trial, calls: Sequence[TraceEvent], again: str) -> dict[str, Any]:
    """Return a running trial: its prompt and its calls so far."""
    turn = Turn(interpolate(trial.task.prompt, trial.params), None, 0.0)
    document = build_trial(run, TracedTrial(trial, Observation(trial.id, (turn,), trace=tuple(calls)), ()), again)
    document["ending"] = document["turns"][0]["ending"] = "under way"
    return document


def _note_control(trial: Trial) -> list[str]:
    """Return a note for a control trial, which only a search finds."""
    return [CONTROL] if trial.kind == "control" else []


def build_call(event: TraceEvent, sent: int = SERVED.sent) -> dict[str, Any]:
    """Return one call with its input and output, up to that many characters of each."""
    return {
        "ts": round(event.ts, 4),
        "duration_ms": round(event.duration_ms, 1),
        **pick(event, "plane event_type tool n retry phase status error_type"),
        "failed": event.failed,
        "input": event.input[:sent],
        "output": event.output[:sent],
        "cost": asdict(event.cost) if event.cost and not event.script else None,
        **pick(event, "fault script times unsent"),
    }


def _find_worst(verdicts: Iterable[Verdict]) -> str:
    """Return the outcome that most needs explaining; empty for a trial that is not judged."""
    order = (*wording.TROUBLE, "pass", "n/a")
    return min((one.outcome for one in verdicts), key=order.index, default="")


def _build_turn(turn: Turn, text: int) -> dict[str, Any]:
    return {
        "asked": cut(turn.asked, text),
        "text": None if turn.text is None else cut(turn.text, text),
        "ending": turn.ending,
        "detail": cut(turn.detail, text),
        "latency_ms": round(turn.latency_ms, 1),
        "status": turn.status,
        "cut": turn.cut,
    }


def _limit_evidence(data: Any, bounds: Bounds) -> Any:
    return fit_value(data, bounds.evidence) if bounds.evidence else shorten_value(data)


def _build_verdict(
    one: Verdict, observation: Observation, run: Run, places: wording.Places, bounds: Bounds
) -> dict[str, Any]:
    judged = (observation.turns[one.turn].text or "") if 0 <= one.turn < len(observation.turns) else ""
    rule = next((rule for rule in run.invariants if rule.id == one.invariant), None)
    return {
        "rule": one.invariant,
        "description": rule.description if rule else "",
        "severity": ("critical" if rule.gate else rule.severity) if rule else "",
        "check": rule.check if rule else "",
        "where": places.format_place(one.invariant),
        **pick(one, "outcome score reason turn"),
        "marks": [to_utf16_span(judged, *span) for span in one.marks if span[1] <= min(bounds.text, len(judged))],
        "details": _limit_evidence(one.details, bounds),
    }


def _build_audit_event(event: AuditEvent, began: float, bounds: Bounds) -> dict[str, Any]:
    return {
        "ts": round(event.ts - began, 3) if began else event.ts,
        "type": event.type,
        "deed": describe_action(event.type, event.details)[:DEED],
        **_build_end(event),
        "details": _limit_evidence(event.details, bounds),
    }


def describe_action(kind: str, details: Mapping[str, Any]) -> str:
    """Return an action of the audit log in a few words."""
    if kind == "command":
        return f"$ {join(map(str, details.get('argv') or ()))}"
    if kind == "file_write":
        return f"{details.get('op', '')} {details.get('path', '')}"
    if kind == "db_write":
        rows = details.get("rows")
        count = wording.format_count(rows, "row") if isinstance(rows, int) else "rows unknown"
        return f"{details.get('op', '')} {details.get('service', '')}.{details.get('table', '')}: {count}"
    return f"{details.get('method', '')} {details.get('url', '')} {details.get('status', '')}".rstrip()


def _build_end(event: AuditEvent) -> dict[str, Any]:
    """Return how a command ended, and whether badly; nothing for other actions."""
    if event.type != "command":
        return {}
    code, took_ms = event.details.get("exit_code"), event.details.get("duration_ms")
    if isinstance(code, int):
        return {"end": f"exit {code}", "bad": code != 0}
    unknown = not isinstance(took_ms, int | float)
    return {"end": "end not known" if unknown else "ended by a signal", "bad": not unknown}


def _take_first(events: Sequence[T], most: int, room: int) -> list[T]:
    """Return as many of the first events as fit."""
    first: list[T] = []
    for event in events[:most]:
        room -= _estimate_size(event)
        if room < 0:
            break
        first.append(event)
    return first


def _estimate_size(event: TraceEvent | AuditEvent) -> int:
    texts: Iterable[Any] = (event.input, event.output) if isinstance(event, TraceEvent) else event.details.values()
    return sum(len(text) if isinstance(text, str) else 100 for text in texts)


def list_file_changes(audit: Iterable[AuditEvent], bounds: Bounds = SERVED) -> list[dict[str, Any]]:
    """Return every file that was created, changed or removed, by the audit log."""
    writes = [event for event in audit if event.type == "file_write"]
    return [_build_change(event.details, event.texts or FileTexts(), bounds.text) for event in writes[:FILES]]


def _build_change(details: dict[str, Any], texts: FileTexts, most: int) -> dict[str, Any]:
    before, after, path = texts.before, texts.after, str(details.get("path", ""))
    return {
        "path": path,
        "op": str(details.get("op", "")),
        "bytes": details.get("bytes"),
        "before": before and cut(before, most),
        "after": after and cut(after, most),
        "diff": cut(_build_diff(path, before, after), most),
    }


def _build_diff(path: str, before: str | None, after: str | None) -> str:
    """Return the difference as `diff -u` shows it; empty if neither side is known."""
    if (before is None and after is None) or len(before or "") + len(after or "") > DIFFED:
        return ""
    old, new = ((text or "").splitlines() for text in (before, after))
    return "\n".join(unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))
