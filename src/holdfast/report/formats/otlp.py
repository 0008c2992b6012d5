"""Traces as OpenTelemetry GenAI spans in OTLP's JSON. Pure: trials in, bytes out.

A trial is a trace: one `invoke_agent` span, and below it a span for every call. A verdict is an event of the first,
`gen_ai.evaluation.result`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

from holdfast.model.codec import encode, make_encodable
from holdfast.model.run import Run, TracedTrial
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import Verdict

BATCH = 500
"""Spans per request, unless one trial alone has more."""
_INTERNAL, _CLIENT = 1, 3
_ERROR = 2
_NANO = 1_000_000_000


def build_requests(run: Run, traced: Iterable[TracedTrial]) -> Iterator[bytes]:
    """Yield the body of every export request, a few trials in each; one per line, they are OTLP's file format."""
    spans: list[dict[str, Any]] = []
    for one in traced:
        spans += build_trial_spans(run, one)
        if len(spans) >= BATCH:
            yield build_body(run, spans)
            spans = []
    if spans:
        yield build_body(run, spans)


def build_body(run: Run, spans: list[dict[str, Any]]) -> bytes:
    """Return one export request."""
    resource = _build_attributes({"service.name": "holdfast", "holdfast.run": run.id, "holdfast.spec": run.spec_path})
    scope = {"name": "holdfast", "version": run.version}
    return encode(
        {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"scope": scope, "spans": spans}]}]}
    )


def build_trial_spans(run: Run, traced: TracedTrial) -> list[dict[str, Any]]:
    """Return the spans of one trial, the agent's own first. Equal runs give equal ids."""
    trace_id = _build_id(16, run.id, run.started, traced.trial.id)
    root = _build_id(8, trace_id)
    span_ids = {e.span_id: _build_id(8, trace_id, n) for n, e in enumerate(traced.seen.trace) if e.span_id}
    spans = [_build_agent_span(run, traced, trace_id, root)]
    for n, event in enumerate(traced.seen.trace):
        # A call whose parent is not in the trace belongs to the agent itself.
        parent = span_ids.get(event.parent_span_id, root)
        spans.append(_build_call_span(event, traced.seen.at, trace_id, _build_id(8, trace_id, n), parent))
    return spans


def _build_agent_span(run: Run, traced: TracedTrial, trace_id: str, span_id: str) -> dict[str, Any]:
    trial, observation = traced.trial, traced.seen
    start, end = _format_time(observation.at, 0), _format_time(observation.at, observation.duration_ms / 1000)
    bad = observation.error or ("" if observation.ending == "answered" else observation.ending)
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": run.name,
        "holdfast.trial": trial.id,
        "holdfast.scenario": trial.scenario.name,
        "holdfast.kind": trial.kind,
        "holdfast.replica": trial.replica,
        "holdfast.fault": "+".join(dict.fromkeys(met.mode for met in observation.met)),
        "error.type": ("harness" if observation.error else observation.ending) if bad else "",
    }
    return _build_span(
        f"invoke_agent {run.name}".rstrip(), _INTERNAL, trace_id, span_id, "", start, end, attributes, bad,
        [_build_evaluation(verdict, end) for verdict in traced.verdicts],
    )  # fmt: skip


def _build_evaluation(verdict: Verdict, at: str) -> dict[str, Any]:
    known = {
        "gen_ai.evaluation.name": verdict.invariant,
        "gen_ai.evaluation.score.value": float(verdict.score),
        "gen_ai.evaluation.score.label": verdict.outcome,
        "gen_ai.evaluation.explanation": verdict.reason,
    }
    return {"timeUnixNano": at, "name": "gen_ai.evaluation.result", "attributes": _build_attributes(known)}


def _build_call_span(event: TraceEvent, began: float, trace_id: str, span_id: str, parent: str) -> dict[str, Any]:
    name, kind, known = _describe_call(event)
    known |= {
        "holdfast.plane": event.plane,
        "holdfast.call": event.n,
        "holdfast.retry": event.retry or None,
        "holdfast.phase": "" if event.phase == "done" else event.phase,
        "holdfast.fault": event.fault,
        "error.type": event.error_type or (str(event.status) if event.failed else ""),
    }
    bad = " ".join(str(part) for part in (event.status, event.error_type) if part) if event.failed else ""
    start, end = _format_time(began, event.ts), _format_time(began, event.ts + event.duration_ms / 1000)
    return _build_span(name, kind, trace_id, span_id, parent, start, end, known, bad, [])


def _describe_call(event: TraceEvent) -> tuple[str, int, dict[str, Any]]:
    """Return the name, kind and attributes of a call's span, by the OpenTelemetry conventions."""
    if event.event_type == "llm_call":
        return f"chat {event.tool}".rstrip(), _CLIENT, _build_chat(event)
    if event.event_type == "http_call":
        method, _, url = event.tool.partition(" ")
        status = event.status
        return method, _CLIENT, {"http.request.method": method, "url.full": url, "http.response.status_code": status}
    known = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": event.tool,
        "gen_ai.tool.call.arguments": event.input,
        "gen_ai.tool.call.result": event.output,
    }
    return f"execute_tool {event.tool}".rstrip(), _INTERNAL, known


def _build_chat(event: TraceEvent) -> dict[str, Any]:
    attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": event.tool}
    attributes["http.response.status_code"] = event.status
    attributes["holdfast.script"] = event.script
    if event.cost is not None and not event.script:
        attributes["gen_ai.response.model"] = event.cost.model
        attributes["gen_ai.usage.input_tokens"] = event.cost.input_tokens
        attributes["gen_ai.usage.output_tokens"] = event.cost.output_tokens
        attributes["holdfast.cost_usd"] = event.cost.estimated_usd if event.cost.billed else None
    return attributes


def _build_span(
    name: str, kind: int, trace_id: str, span_id: str, parent: str, start: str, end: str,
    known: dict[str, Any], bad: str, events: list[dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    span: dict[str, Any] = {"traceId": trace_id, "spanId": span_id}
    if parent:
        span["parentSpanId"] = parent
    span |= {"name": make_encodable(name), "kind": kind, "startTimeUnixNano": start, "endTimeUnixNano": end}
    span["attributes"] = _build_attributes(known)
    if events:
        span["events"] = events
    span["status"] = {"code": _ERROR, "message": make_encodable(bad)} if bad else {}
    return span


def _build_attributes(known: dict[str, Any]) -> list[dict[str, Any]]:
    """Build keys and typed values of all known attributes; empty texts are left out."""
    return [
        {"key": key, "value": _build_value(value)} for key, value in known.items() if value is not None and value != ""
    ]


def _build_value(value: str | int | float) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": make_encodable(value)}
    # The JSON of protobuf writes 64-bit numbers as text.
    return {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}


def _format_time(began: float, seconds: float) -> str:
    """Return the time in integer nanoseconds since 1970, which a float cannot hold."""
    return str(round(began * _NANO) + round(seconds * _NANO))


def _build_id(size: int, *parts: object) -> str:
    return blake2b("/".join(map(str, parts)).encode("utf-8", "replace"), digest_size=size).hexdigest()
