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
            trace = read_at(entry, "trace") if isinstance(read_at(entry, "trace"), dict) else entry
            yield build_session(
                _build_trace(read_text(trace, "id"), trace, _list_observations(entry) or _list_observations(trace))
            )
        else:
            yield LeftOutTrace(
                read_text(entry, "id") or "an entry", "it is neither a Langfuse trace nor a Langfuse observation"
            )
    for id, inside in loose.items():
        yield build_session(_build_trace(id, {}, inside))


def _list_entries(document: Any) -> list[Any]:
    """Return the traces or observations of a list, an API page or a Langfuse session, or the single document."""
    if isinstance(document, list):
        return document
    return read_list(document, "data") or read_list(document, "traces") or [document]


def _is_observation(entry: Any) -> bool:
    return read_text(entry, "type").upper() in _TYPES and bool(read_text(entry, "traceId"))


def _is_trace(entry: Any) -> bool:
    trace = read_at(entry, "trace") if isinstance(read_at(entry, "trace"), dict) else entry
    own = read_at(entry, "observations")
    listed = isinstance(own, list | dict) or isinstance(read_at(trace, "observations"), list | dict)
    return bool(read_text(trace, "id")) and (listed or {"htmlPath", "timestamp"} <= set(trace))


def _list_observations(holder: Any) -> list[Any]:
    value = read_at(holder, "observations")
    entries = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def _build_trace(id: str, trace: dict[str, Any], inside: list[Any]) -> ForeignTrace:
    inside = sorted(inside, key=lambda observation: to_seconds(read_at(observation, "startTime")) or 0.0)
    ids = {read_text(observation, "id") for observation in inside}
    roots = [observation for observation in inside if read_text(observation, "parentObservationId") not in ids]
    generations = [observation for observation in inside if read_text(observation, "type").upper() == "GENERATION"]
    began = to_seconds(read_at(trace, "timestamp")) or next(
        (to_seconds(read_at(observation, "startTime")) for observation in inside), None
    )
    # For traces without observations of tools: the last model call has their results in its messages.
    conversations = (
        find_messages(unpack_json(read_first(observation, "input"))) for observation in reversed(generations)
    )
    failed = [observation for observation in (*roots, *inside) if read_text(observation, "level").upper() == "ERROR"]
    return ForeignTrace(
        id=id,
        asked=tuple(unpack_json(read_first(observation, "input")) for observation in (trace, *roots, *generations)),
        tools=tuple(_list_tools(inside)) or find_last_tool_uses(conversations),
        name=read_text(trace, "name") or next((read_text(observation, "name") for observation in roots), ""),
        source=SOURCE,
        began=began,
        failure=next(
            (
                read_text(observation, "statusMessage") or f"{read_text(observation, 'name')} failed"
                for observation in failed
            ),
            "",
        ),
    )


def _list_tools(inside: list[Any]) -> Iterator[ToolUse]:
    """Yield the tool calls: observations marked as such or, without any, steps with a tool's result."""
    marked = [use for observation in inside if (use := _read_tool(observation)) is not None]
    if marked:
        yield from marked
        return
    # Several steps may describe the same call, so steps with equal name, arguments and output count once.
    steps: set[str] = set()
    for observation in inside:
        attributes = _merge_attributes(observation)
        name, output = read_text(attributes, "tool.name"), unpack_json(read_first(observation, "output"))
        step = to_json([name, attributes.get("tool.parameters"), output])
        if name and output is not None and step not in steps:
            steps.add(step)
            yield _build_tool_use(observation, name, output)


def _read_tool(observation: Any) -> ToolUse | None:
    """Return the tool call that an observation describes; None if it is not a tool call."""
    attributes = _merge_attributes(observation)
    output = unpack_json(read_first(observation, "output"))
    if output in (None, "", {}, []):
        output = unpack_json(read_first(attributes, *_RESULTS)) or output
    named = (
        read_text(attributes, "gen_ai.tool.name")
        or read_text(attributes, "tool.name")
        or read_text(attributes, "ai.toolCall.name")
    )
    kind = (
        read_text(observation, "type").upper() == "TOOL"
        or read_text(attributes, "gen_ai.operation.name") == "execute_tool"
    )
    kind = kind or (
        bool(read_text(attributes, "tool.name")) and read_text(attributes, "openinference.span.kind") == "TOOL"
    )
    results = [result for message in read_messages([output])[:1] for result in message.results]
    if results:  # LangChain wraps a result in a tool message
        _, name, answer = results[0]
        return _build_tool_use(
            observation, named or name or read_text(observation, "name"), msgspec.json.decode(answer)
        )
    return (
        _build_tool_use(observation, named or read_text(observation, "name"), output)
        if kind or "gen_ai.tool.name" in attributes
        else None
    )


def _build_tool_use(observation: Any, name: str, output: Any) -> ToolUse:
    failed = read_text(observation, "level").upper() == "ERROR"
    return ToolUse(
        tool=name,
        output=output,
        error=(read_text(observation, "statusMessage") or "error") if failed else "",
        latency_ms=compute_duration_ms(read_at(observation, "startTime"), read_at(observation, "endTime")),
        began=to_seconds(read_at(observation, "startTime")) or 0.0,
        arguments=read_at(observation, "input"),
    )


def _merge_attributes(observation: Any) -> dict[str, Any]:
    """Return the metadata of an observation, merged with the attributes of its span."""
    metadata = unpack_json(read_at(observation, "metadata"))
    inner = unpack_json(read_at(metadata, "attributes"))
    return {**(metadata if isinstance(metadata, dict) else {}), **(inner if isinstance(inner, dict) else {})}
