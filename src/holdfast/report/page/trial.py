"""All that is known of one trial: the conversation, its calls with their outputs, faults, evidence and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import unified_diff
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from msgspec.structs import asdict

from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.run import Run, TracedTrial
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.model.world import AuditEvent, FileTexts
from holdfast.report import standards, wording
from holdfast.report.page.values import cut, shortened, utf16_span
from holdfast.score.spending import spent
from holdfast.spec.references import interpolate
from holdfast.store.run_names import name_here

TEXT = 200_000
"""Characters of one answer; the run's folder has the rest, and the page says so."""
EVENTS, ROOM = 1_000, 4_000_000
"""Of a trace or an audit log: how many events the page gets, and how many characters of them in all."""
FILES, DIFFED = 500, 200_000
"""Files that the page gets, and characters of them that are compared."""
CONTROL = (
    "This is a control: the prompt was asked in calm, to compare with. No rule judges it, and it is not run by itself."
)
T = TypeVar("T", TraceEvent, AuditEvent)


def trial_document(run: Run, found: TracedTrial, again: str) -> dict[str, Any]:
    """A trial that was seen."""
    trial, seen = found.trial, found.seen
    trace, audit, used = _first(seen.trace), _first(seen.audit), spent(seen.trace)
    failed = trial.kind == "contract" and any(one.outcome == "fail" for one in found.verdicts)
    return {
        "id": trial.id,
        "kind": trial.kind,
        "scenario": trial.scenario,
        "params": wording.params(trial.params),
        "column": wording.head(trial.scenario, trial.params),
        "replica": trial.replica,
        "invariant": trial.invariant,
        "seed": str(trial.seed),
        "task": shortened(trial.task),
        "outcome": _worst(found.verdicts),
        "ending": "error" if seen.error else seen.ending,
        "detail": cut(seen.error or next((turn.detail for turn in seen.turns if turn.detail), ""), TEXT),
        "turns": [_turn(turn) for turn in seen.turns],
        "verdicts": [_verdict(one, seen, run) for one in found.verdicts],
        "faults": [_fault(one) for one in seen.ledger[:EVENTS]],
        "trace": [call_document(event) for event in trace],
        "trace_left_out": len(seen.trace) - len(trace),
        "audit": [_audited(event, seen.at) for event in audit],
        "audit_left_out": len(seen.audit) - len(audit),
        "files": file_changes(seen.audit),
        "forbidden": [
            {"rule": one.rule, "violated": one.violated, "details": one.details, "error": one.error}
            for one in seen.forbidden
        ],
        "evidence": {rule: {"data": shortened(one.data), "error": one.error} for rule, one in seen.evidence.items()},
        "recorded": [
            {"tool": one.tool, "n": one.n, "call": one.call, "known": one.known, "passed": one.passed}
            for one in seen.recorded[:EVENTS]
        ],
        "output": cut(seen.output, TEXT),
        "notes": [*_about_control(trial), *seen.notes],
        "standards": [str(one) for one in standards.of_faults(wording.met(seen.ledger))],
        "canaries": sorted({word for met in seen.ledger for word in met.canaries}),
        "simulated": seen.simulated,
        "concurrent": seen.concurrent,
        "attempts": seen.attempts,
        "started": seen.at or None,
        "duration_ms": round(seen.duration_ms, 1),
        "spent": asdict(used) if used else None,
        "again": "" if trial.kind == "control" else again,
        "promote": f"holdfast promote {trial.id} {quote(name_here(Path(run.path)))}" if failed else "",
    }


def unended_document(trial: Trial, calls: Sequence[TraceEvent], again: str) -> dict[str, Any]:
    """A trial that is under way: what it was asked, and the calls that it has made."""
    shown, asked = _first(calls), cut(interpolate(trial.task.prompt, trial.params), TEXT)
    return {
        "id": trial.id,
        "kind": trial.kind,
        "scenario": trial.scenario,
        "params": wording.params(trial.params),
        "column": wording.head(trial.scenario, trial.params),
        "replica": trial.replica,
        "invariant": trial.invariant,
        "seed": str(trial.seed),
        "task": shortened(trial.task),
        "outcome": "",
        "ending": "under way",
        "detail": "",
        "turns": [{"asked": asked, "text": None, "ending": "under way", "detail": "", "latency_ms": 0.0}],
        "trace": [call_document(event) for event in shown],
        "trace_left_out": len(calls) - len(shown),
        **{name: [] for name in ("verdicts", "faults", "audit", "files", "forbidden", "recorded")},
        **{name: [] for name in ("canaries", "standards")},
        "notes": _about_control(trial),
        "audit_left_out": 0,
        "evidence": {},
        "output": "",
        "spent": None,
        "again": "" if trial.kind == "control" else again,
        "promote": "",
    }


def _about_control(trial: Trial) -> list[str]:
    """A control is found by a search, and nothing else leads to it."""
    return [CONTROL] if trial.kind == "control" else []


def call_document(event: TraceEvent) -> dict[str, Any]:
    """One call with what was sent and what came back."""
    return {
        "ts": round(event.ts, 4),
        "duration_ms": round(event.duration_ms, 1),
        "plane": event.plane,
        "event_type": event.event_type,
        "tool": event.tool,
        "n": event.n,
        "retry": event.retry,
        "phase": event.phase,
        "status": event.status,
        "error_type": event.error_type,
        "failed": event.failed,
        "input": event.input,
        "output": event.output,
        "fault": event.fault,
        "cost": asdict(event.cost) if event.cost and not event.script else None,
        "script": event.script,
        "times": event.times,
        "unsent": event.unsent,
    }


def _worst(verdicts: Iterable[Verdict]) -> str:
    """The outcome that needs explaining most; empty of a trial that is not judged."""
    order = (*wording.TROUBLE, "pass", "n/a")
    return min((one.outcome for one in verdicts), key=order.index, default="")


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "asked": cut(turn.asked, TEXT),
        "text": None if turn.text is None else cut(turn.text, TEXT),
        "ending": turn.ending,
        "detail": cut(turn.detail, TEXT),
        "latency_ms": round(turn.latency_ms, 1),
        "status": turn.status,
        "cut": turn.cut,
    }


def _verdict(one: Verdict, seen: Observation, run: Run) -> dict[str, Any]:
    judged = (seen.turns[one.turn].text or "") if 0 <= one.turn < len(seen.turns) else ""
    rule = next((rule for rule in run.invariants if rule.id == one.invariant), None)
    return {
        "rule": one.invariant,
        "description": rule.description if rule else "",
        "severity": ("critical" if rule.gate else rule.severity) if rule else "",
        "check": rule.check if rule else "",
        "where": wording.Places(run).of(one.invariant),
        "outcome": one.outcome,
        "score": one.score,
        "reason": one.reason,
        "marks": [utf16_span(judged, *span) for span in one.marks if span[1] <= min(TEXT, len(judged))],
        "turn": one.turn,
        "details": shortened(one.details),
    }


def _fault(met: FaultMet) -> dict[str, Any]:
    return {
        "plane": met.plane,
        "target": met.target,
        "mode": met.mode,
        "call": met.call,
        "retry": met.retry,
        "effect": met.effect,
        "would": met.would,
        "got": met.got,
        "note": met.note,
        "text": wording.fault(met),
    }


def _audited(event: AuditEvent, began: float) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "ts": round(event.ts - began, 3) if began else event.ts,
        "type": event.type,
        "details": shortened(event.details),
    }


def _first(events: Sequence[T]) -> list[T]:
    """As many of the first as there is room for."""
    kept: list[T] = []
    room = ROOM
    for event in events[:EVENTS]:
        room -= _size(event)
        if room < 0:
            break
        kept.append(event)
    return kept


def _size(event: TraceEvent | AuditEvent) -> int:
    texts: Iterable[Any] = (event.input, event.output) if isinstance(event, TraceEvent) else event.details.values()
    return sum(len(text) if isinstance(text, str) else 100 for text in texts)


def file_changes(audit: Iterable[AuditEvent]) -> list[dict[str, Any]]:
    """Every file that was made, changed or removed, as the audit log has it."""
    found = [event for event in audit if event.type == "file_write"]
    return [_change(event.details, event.texts or FileTexts()) for event in found[:FILES]]


def _change(details: dict[str, Any], texts: FileTexts) -> dict[str, Any]:
    before, after, path = texts.before, texts.after, str(details.get("path", ""))
    return {
        "path": path,
        "op": str(details.get("op", "")),
        "bytes": details.get("bytes"),
        "before": before,
        "after": after,
        "diff": _diff(path, before, after),
    }


def _diff(path: str, before: str | None, after: str | None) -> str:
    """As `diff -u` shows it; nothing where neither side is known."""
    if (before is None and after is None) or len(before or "") + len(after or "") > DIFFED:
        return ""
    old, new = ((text or "").splitlines() for text in (before, after))
    return "\n".join(unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))
