"""Converts Langfuse traces to sessions: a trace with its observations, as downloaded or as returned by the API."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.replay.foreign_json import (
    compute_duration_ms,
    read_at,
    read_first,
    read_list,
    read_text,
    to_json,
    to_seconds,
    unpack_json,
)
from holdfast.replay.foreign_messages import find_messages, read_messages
from holdfast.replay.foreign_trace import ForeignTrace, Found, LeftOutTrace, ToolUse, build_session, find_last_tool_uses

SOURCE = "langfuse"
_TYPES = frozenset(
    ("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
)

_RESULTS = ("gen_ai.tool.call.result", "gcp.vertex.agent.tool_response", "output.value")
"""Attributes that may hold a tool's result if the observation's own output is empty."""


def matches(document: Any) -> bool:
    """Whether the document is a trace, a list of traces or a list of observations."""
    one = _list_entries(document)[:1]
    return bool(one) and (_is_trace(one[0]) or _is_observation(one[0]))


def read(document: Any) -> Iterator[Found]:
    """Yield a session for every trace in the document."""
    loose: defaultdict[str, list[Any]] = defaultdict(list)
    for one in _list_entries(document):
        if _is_observation(one):
            loose[read_text(one, "traceId")].append(one)
        elif _is_trace(one):
            trace = read_at(one, "trace") if isinstance(read_at(one, "trace"), dict) else one
            yield build_session(
                _build_trace(read_text(trace, "id"), trace, _list_observations(one) or _list_observations(trace))
            )
        else:
            yield LeftOutTrace(
                read_text(one, "id") or "an entry", "it is neither a Langfuse trace nor a Langfuse observation"
            )
    for id, inside in loose.items():
        yield build_session(_build_trace(id, {}, inside))


def _list_entries(document: Any) -> list[Any]:
    """Return the traces or observations of a list, an API page or a Langfuse session, or the single document."""
    if isinstance(document, list):
        return document
    return read_list(document, "data") or read_list(document, "traces") or [document]


def _is_observation(one: Any) -> bool:
    return read_text(one, "type").upper() in _TYPES and bool(read_text(one, "traceId"))


def _is_trace(one: Any) -> bool:
    trace = read_at(one, "trace") if isinstance(read_at(one, "trace"), dict) else one
    own = read_at(one, "observations")
    listed = isinstance(own, list | dict) or isinstance(read_at(trace, "observations"), list | dict)
    return bool(read_text(trace, "id")) and (listed or {"htmlPath", "timestamp"} <= set(trace))


def _list_observations(holder: Any) -> list[Any]:
    value = read_at(holder, "observations")
    entries = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [one for one in entries if isinstance(one, dict)]


def _build_trace(id: str, trace: dict[str, Any], inside: list[Any]) -> ForeignTrace:
    inside = sorted(inside, key=lambda one: to_seconds(read_at(one, "startTime")) or 0.0)
    known = {read_text(one, "id") for one in inside}
    roots = [one for one in inside if read_text(one, "parentObservationId") not in known]
    generations = [one for one in inside if read_text(one, "type").upper() == "GENERATION"]
    began = to_seconds(read_at(trace, "timestamp")) or next(
        (to_seconds(read_at(one, "startTime")) for one in inside), None
    )
    # For traces without observations of tools: the last model call has their results in its messages.
    conversations = (find_messages(unpack_json(read_first(one, "input"))) for one in reversed(generations))
    failed = [one for one in (*roots, *inside) if read_text(one, "level").upper() == "ERROR"]
    return ForeignTrace(
        id=id,
        asked=tuple(unpack_json(read_first(one, "input")) for one in (trace, *roots, *generations)),
        tools=tuple(_list_tools(inside)) or find_last_tool_uses(conversations),
        name=read_text(trace, "name") or next((read_text(one, "name") for one in roots), ""),
        source=SOURCE,
        began=began,
        failure=next((read_text(one, "statusMessage") or f"{read_text(one, 'name')} failed" for one in failed), ""),
    )


def _list_tools(inside: list[Any]) -> Iterator[ToolUse]:
    """Tool calls: the observations marked as such or, without any, steps that hold a tool's result."""
    marked = [use for one in inside if (use := _read_tool(one)) is not None]
    if marked:
        yield from marked
        return
    # Several steps may describe the same call, so steps with equal name, arguments and output count once.
    steps: set[str] = set()
    for one in inside:
        known = _merge_attributes(one)
        name, output = read_text(known, "tool.name"), unpack_json(read_first(one, "output"))
        step = to_json([name, known.get("tool.parameters"), output])
        if name and output is not None and step not in steps:
            steps.add(step)
            yield _build_tool_use(one, name, output)


def _read_tool(one: Any) -> ToolUse | None:
    """Return the tool call that an observation describes; None if it is not a tool call."""
    known = _merge_attributes(one)
    output = unpack_json(read_first(one, "output"))
    if output in (None, "", {}, []):
        output = unpack_json(read_first(known, *_RESULTS)) or output
    named = (
        read_text(known, "gen_ai.tool.name") or read_text(known, "tool.name") or read_text(known, "ai.toolCall.name")
    )
    kind = read_text(one, "type").upper() == "TOOL" or read_text(known, "gen_ai.operation.name") == "execute_tool"
    kind = kind or (bool(read_text(known, "tool.name")) and read_text(known, "openinference.span.kind") == "TOOL")
    results = [one for message in read_messages([output])[:1] for one in message.results]
    if results:  # LangChain wraps a result in a tool message
        _, name, answer = results[0]
        return _build_tool_use(one, named or name or read_text(one, "name"), msgspec.json.decode(answer))
    return (
        _build_tool_use(one, named or read_text(one, "name"), output) if kind or "gen_ai.tool.name" in known else None
    )


def _build_tool_use(one: Any, name: str, output: Any) -> ToolUse:
    failed = read_text(one, "level").upper() == "ERROR"
    return ToolUse(
        tool=name,
        output=output,
        error=(read_text(one, "statusMessage") or "error") if failed else "",
        latency_ms=compute_duration_ms(read_at(one, "startTime"), read_at(one, "endTime")),
        began=to_seconds(read_at(one, "startTime")) or 0.0,
        arguments=read_at(one, "input"),
    )


def _merge_attributes(one: Any) -> dict[str, Any]:
    """Return the metadata of an observation, merged with the attributes of its span."""
    known = unpack_json(read_at(one, "metadata"))
    inner = unpack_json(read_at(known, "attributes"))
    return {**(known if isinstance(known, dict) else {}), **(inner if isinstance(inner, dict) else {})}
