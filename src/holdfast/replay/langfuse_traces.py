"""Converts Langfuse traces to sessions: a trace with its observations, as downloaded or as returned by the API."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.replay.foreign_json import as_json, at, first, items, lasted_ms, seconds, text, unpacked
from holdfast.replay.foreign_messages import after_question, messages, messages_in
from holdfast.replay.foreign_trace import ForeignTrace, Found, LeftOutTrace, ToolUse, session_of, tools_in_messages

SOURCE = "langfuse"
_TYPES = frozenset(
    ("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
)

_RESULTS = ("gen_ai.tool.call.result", "gcp.vertex.agent.tool_response", "output.value")
"""Attributes that may hold a tool's result if the observation's own output is empty."""


def matches(document: Any) -> bool:
    """Whether the document is a trace, a list of traces or a list of observations."""
    one = _listed(document)[:1]
    return bool(one) and (_is_trace(one[0]) or _is_observation(one[0]))


def read(document: Any) -> Iterator[Found]:
    """A session for every trace in the document."""
    loose: defaultdict[str, list[Any]] = defaultdict(list)
    for one in _listed(document):
        if _is_observation(one):
            loose[text(one, "traceId")].append(one)
        elif _is_trace(one):
            trace = at(one, "trace") if isinstance(at(one, "trace"), dict) else one
            yield session_of(_trace(text(trace, "id"), trace, _observations(one) or _observations(trace)))
        else:
            yield LeftOutTrace(
                text(one, "id") or "an entry", "it is neither a Langfuse trace nor a Langfuse observation"
            )
    for id, inside in loose.items():
        yield session_of(_trace(id, {}, inside))


def _listed(document: Any) -> list[Any]:
    """The traces or observations of a list, an API page or a Langfuse session, or the single document."""
    if isinstance(document, list):
        return document
    return items(document, "data") or items(document, "traces") or [document]


def _is_observation(one: Any) -> bool:
    return text(one, "type").upper() in _TYPES and bool(text(one, "traceId"))


def _is_trace(one: Any) -> bool:
    trace = at(one, "trace") if isinstance(at(one, "trace"), dict) else one
    own = at(one, "observations")
    listed = isinstance(own, list | dict) or isinstance(at(trace, "observations"), list | dict)
    return bool(text(trace, "id")) and (listed or {"htmlPath", "timestamp"} <= set(trace))


def _observations(holder: Any) -> list[Any]:
    value = at(holder, "observations")
    entries = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [one for one in entries if isinstance(one, dict)]


def _trace(id: str, trace: dict[str, Any], inside: list[Any]) -> ForeignTrace:
    inside = sorted(inside, key=lambda one: seconds(at(one, "startTime")) or 0.0)
    known = {text(one, "id") for one in inside}
    roots = [one for one in inside if text(one, "parentObservationId") not in known]
    generations = [one for one in inside if text(one, "type").upper() == "GENERATION"]
    began = seconds(at(trace, "timestamp")) or next((seconds(at(one, "startTime")) for one in inside), None)
    failed = [one for one in (*roots, *inside) if text(one, "level").upper() == "ERROR"]
    return ForeignTrace(
        id=id,
        asked=tuple(unpacked(first(one, "input")) for one in (trace, *roots, *generations)),
        tools=tuple(_tools(inside)) or _from_messages(generations),
        name=text(trace, "name") or next((text(one, "name") for one in roots), ""),
        source=SOURCE,
        began=began,
        failure=next((text(one, "statusMessage") or f"{text(one, 'name')} failed" for one in failed), ""),
    )


def _tools(inside: list[Any]) -> Iterator[ToolUse]:
    """Tool calls: the observations marked as such or, without any, steps that hold a tool's result."""
    marked = [use for one in inside if (use := _tool(one)) is not None]
    if marked:
        yield from marked
        return
    # Several steps may describe the same call, so steps with equal name, arguments and output count once.
    steps: set[str] = set()
    for one in inside:
        known = _attributes(one)
        name, output = text(known, "tool.name"), unpacked(first(one, "output"))
        step = as_json([name, known.get("tool.parameters"), output])
        if name and output is not None and step not in steps:
            steps.add(step)
            yield _used(one, name, output)


def _tool(one: Any) -> ToolUse | None:
    """The tool call that an observation describes; None if it is not a tool call."""
    known = _attributes(one)
    output = unpacked(first(one, "output"))
    if output in (None, "", {}, []):
        output = unpacked(first(known, *_RESULTS)) or output
    named = text(known, "gen_ai.tool.name") or text(known, "tool.name") or text(known, "ai.toolCall.name")
    kind = text(one, "type").upper() == "TOOL" or text(known, "gen_ai.operation.name") == "execute_tool"
    kind = kind or (bool(text(known, "tool.name")) and text(known, "openinference.span.kind") == "TOOL")
    results = [one for message in messages([output])[:1] for one in message.results]
    if results:  # LangChain wraps a result in a tool message
        _, name, answer = results[0]
        return _used(one, named or name or text(one, "name"), msgspec.json.decode(answer))
    return _used(one, named or text(one, "name"), output) if kind or "gen_ai.tool.name" in known else None


def _used(one: Any, name: str, output: Any) -> ToolUse:
    failed = text(one, "level").upper() == "ERROR"
    return ToolUse(
        tool=name,
        output=output,
        error=(text(one, "statusMessage") or "error") if failed else "",
        latency_ms=lasted_ms(at(one, "startTime"), at(one, "endTime")),
        began=seconds(at(one, "startTime")) or 0.0,
    )


def _from_messages(generations: list[Any]) -> tuple[ToolUse, ...]:
    """Tool results from the messages of the last model call, for traces without observations of tools."""
    conversations = (after_question(messages_in(unpacked(first(one, "input")))) for one in reversed(generations))
    return next((uses for one in conversations if (uses := tools_in_messages(one))), ())


def _attributes(one: Any) -> dict[str, Any]:
    """The metadata of an observation, merged with the attributes of its span."""
    known = unpacked(at(one, "metadata"))
    inner = unpacked(at(known, "attributes"))
    return {**(known if isinstance(known, dict) else {}), **(inner if isinstance(inner, dict) else {})}
