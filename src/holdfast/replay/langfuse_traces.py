"""Traces of Langfuse to sessions: a trace with its observations, as downloaded or as its API gives them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from holdfast.replay.foreign_json import at, decoded, first, items, lasted_ms, seconds, text
from holdfast.replay.foreign_trace import ForeignTrace, Found, LeftOutTrace, ToolUse, session_of

SOURCE = "langfuse"
_TYPES = frozenset(
    ("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
)


def matches(document: Any) -> bool:
    """Whether this is a trace, several, or a list of observations."""
    one = _listed(document)[:1]
    return bool(one) and (_is_trace(one[0]) or _is_observation(one[0]))


def read(document: Any) -> Iterator[Found]:
    """A session for every trace in it."""
    loose: defaultdict[str, list[Any]] = defaultdict(list)
    for one in _listed(document):
        if _is_observation(one):
            loose[text(one, "traceId")].append(one)
        elif _is_trace(one):
            trace = at(one, "trace") if isinstance(at(one, "trace"), dict) else one
            yield session_of(_trace(text(trace, "id"), trace, _observations(one) or _observations(trace)))
        else:
            yield LeftOutTrace(text(one, "id") or "an entry", "it is neither a trace nor an observation of Langfuse")
    for id, inside in loose.items():
        yield session_of(_trace(id, {}, inside))


def _listed(document: Any) -> list[Any]:
    """Its traces or observations: a list, a page of the API, a session's traces, or one alone."""
    if isinstance(document, list):
        return document
    return items(document, "data") or items(document, "traces") or [document]


def _is_observation(one: Any) -> bool:
    return text(one, "type").upper() in _TYPES and bool(text(one, "traceId"))


def _is_trace(one: Any) -> bool:
    trace = at(one, "trace") if isinstance(at(one, "trace"), dict) else one
    told = at(one, "observations")
    listed = isinstance(told, list | dict) or isinstance(at(trace, "observations"), list | dict)
    return bool(text(trace, "id")) and (listed or {"htmlPath", "timestamp"} <= set(trace))


def _observations(holder: Any) -> list[Any]:
    told = at(holder, "observations")
    found = list(told.values()) if isinstance(told, dict) else told if isinstance(told, list) else []
    return [one for one in found if isinstance(one, dict)]


def _trace(id: str, trace: dict[str, Any], inside: list[Any]) -> ForeignTrace:
    inside = sorted(inside, key=lambda one: seconds(at(one, "startTime")) or 0.0)
    known = {text(one, "id") for one in inside}
    roots = [one for one in inside if text(one, "parentObservationId") not in known]
    generations = [one for one in inside if text(one, "type").upper() == "GENERATION"]
    began = seconds(at(trace, "timestamp")) or next((seconds(at(one, "startTime")) for one in inside), None)
    failed = [one for one in (*roots, *inside) if text(one, "level").upper() == "ERROR"]
    return ForeignTrace(
        id=id,
        asked=tuple(first(one, "input") for one in (trace, *roots, *generations)),
        tools=tuple(_tool(one) for one in inside if _is_tool(one)),
        name=text(trace, "name") or next((text(one, "name") for one in roots), ""),
        source=SOURCE,
        began=began,
        failure=next((text(one, "statusMessage") or f"{text(one, 'name')} failed" for one in failed), ""),
    )


def _is_tool(one: Any) -> bool:
    return text(one, "type").upper() == "TOOL"


def _tool(one: Any) -> ToolUse:
    failed = text(one, "level").upper() == "ERROR"
    return ToolUse(
        tool=text(one, "name"),
        output=decoded(at(one, "output")),
        error=(text(one, "statusMessage") or "error") if failed else "",
        latency_ms=lasted_ms(at(one, "startTime"), at(one, "endTime")),
        began=seconds(at(one, "startTime")) or 0.0,
    )
