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
from holdfast.replay.foreign_messages import read_messages
from holdfast.replay.foreign_trace import Found, LeftOutTrace, TraceStep, build_sessions

SOURCE = "langfuse"
_TYPES = frozenset(
    ("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
)

_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name")
_RESULTS = ("gen_ai.tool.call.result", "gcp.vertex.agent.tool_response", "output.value")
"""Attributes that may hold a tool's result if the observation's own output is empty."""


def matches(document: Any) -> bool:
    """Return whether the document is a trace, a list of traces or a list of observations."""
    first = _list_entries(document)[:1]
    return bool(first) and (_is_trace(first[0]) or _is_observation(first[0]))


def read(document: Any) -> Iterator[Found]:
    """Yield a session for every trace in the document."""
    loose: defaultdict[str, list[Any]] = defaultdict(list)
    for entry in _list_entries(document):
        if _is_observation(entry):
            loose[read_text(entry, "traceId")].append(entry)
        elif _is_trace(entry):
            trace = _get_trace(entry)
            observations = _list_observations(entry) or _list_observations(trace)
            yield from build_sessions(_list_steps(read_text(trace, "id"), trace, observations), SOURCE)
        else:
            why = "it is neither a Langfuse trace nor a Langfuse observation"
            yield LeftOutTrace(read_text(entry, "id") or "an entry", why)
    for id, observations in loose.items():
        yield from build_sessions(_list_steps(id, {}, observations), SOURCE)


def _list_entries(document: Any) -> list[Any]:
    """Return the traces or observations of a list, an API page or a Langfuse session, or the single document."""
    if isinstance(document, list):
        return document
    return read_list(document, "data") or read_list(document, "traces") or [document]


def _is_observation(entry: Any) -> bool:
    return read_text(entry, "type").upper() in _TYPES and bool(read_text(entry, "traceId"))


def _get_trace(entry: Any) -> Any:
    """Return the trace of an entry: a download may keep it apart from its observations."""
    return read_at(entry, "trace") if isinstance(read_at(entry, "trace"), dict) else entry


def _is_trace(entry: Any) -> bool:
    trace = _get_trace(entry)
    listed = any(isinstance(read_at(one, "observations"), list | dict) for one in (entry, trace))
    return bool(read_text(trace, "id")) and (listed or {"htmlPath", "timestamp"} <= set(trace))


def _list_observations(holder: Any) -> list[Any]:
    value = read_at(holder, "observations")
    entries = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def _list_steps(id: str, trace: dict[str, Any], observations: list[Any]) -> Iterator[TraceStep]:
    """Yield the trace itself and its observations as steps."""
    observations = sorted(observations, key=_get_start)
    tools = {n: tool for n, one in enumerate(observations) if (tool := _read_tool(one)) is not None}
    tools = tools or _find_unmarked_tools(observations)
    yield TraceStep(
        trace=id,
        id=f"trace {id}",
        parent="",
        name=read_text(trace, "name"),
        inputs=(unpack_json(read_first(trace, "input")),),
        error=next(filter(None, map(_read_error, observations)), ""),
        began=to_seconds(read_at(trace, "timestamp")) or next(map(_get_start, observations), 0.0),
    )
    for n, observation in enumerate(observations):
        name, output = tools.get(n, (read_text(observation, "name"), None))
        generation = read_text(observation, "type").upper() == "GENERATION"
        yield TraceStep(
            trace=id,
            id=read_text(observation, "id"),
            parent=read_text(observation, "parentObservationId"),
            name=name,
            kind="tool" if n in tools else "model" if generation else "",
            inputs=(unpack_json(read_first(observation, "input")),),
            output=output,
            arguments=read_at(observation, "input"),
            error=_read_error(observation),
            began=_get_start(observation),
            latency_ms=compute_duration_ms(read_at(observation, "startTime"), read_at(observation, "endTime")),
        )


def _get_start(observation: Any) -> float:
    return to_seconds(read_at(observation, "startTime")) or 0.0


def _read_error(observation: Any) -> str:
    if read_text(observation, "level").upper() != "ERROR":
        return ""
    return read_text(observation, "statusMessage") or f"{read_text(observation, 'name')} failed"


def _find_unmarked_tools(observations: list[Any]) -> dict[int, tuple[str, Any]]:
    """Return the steps with a tool's result, for traces that mark no observation as a tool."""
    # Several steps may describe the same call, so steps with equal name, arguments and output count once.
    calls: dict[str, tuple[int, str, Any]] = {}
    for n, observation in enumerate(observations):
        attributes = _merge_attributes(observation)
        name, output = read_text(attributes, "tool.name"), unpack_json(read_first(observation, "output"))
        if name and output is not None:
            calls.setdefault(to_json([name, attributes.get("tool.parameters"), output]), (n, name, output))
    return {n: (name, output) for n, name, output in calls.values()}


def _read_tool(observation: Any) -> tuple[str, Any] | None:
    """Return the tool that an observation calls, and its output; None if it is not a tool call."""
    # Langfuse has a type for tools, but most traces reach it from other instrumentation, which marks a tool in its own
    # attributes, or only by the shape of its result.
    attributes = _merge_attributes(observation)
    output = unpack_json(read_first(observation, "output"))
    if output in (None, "", {}, []):
        output = unpack_json(read_first(attributes, *_RESULTS)) or output
    name = next(filter(None, (read_text(attributes, key) for key in _NAMES)), "")
    results = [result for message in read_messages([output])[:1] for result in message.results]
    if results:  # LangChain wraps a result in a tool message
        _, result_name, answer = results[0]
        return name or result_name or read_text(observation, "name"), msgspec.json.decode(answer)
    is_tool = (
        read_text(observation, "type").upper() == "TOOL"
        or read_text(attributes, "gen_ai.operation.name") == "execute_tool"
        or "gen_ai.tool.name" in attributes
        or (read_text(attributes, "tool.name") and read_text(attributes, "openinference.span.kind") == "TOOL")
    )
    return (name or read_text(observation, "name"), output) if is_tool else None


def _merge_attributes(observation: Any) -> dict[str, Any]:
    """Return the metadata of an observation, merged with the attributes of its span."""
    metadata = unpack_json(read_at(observation, "metadata"))
    inner = unpack_json(read_at(metadata, "attributes"))
    return {**(metadata if isinstance(metadata, dict) else {}), **(inner if isinstance(inner, dict) else {})}
