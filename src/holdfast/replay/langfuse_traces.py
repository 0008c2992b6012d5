"""Traces of Langfuse to sessions: a trace with its observations, as downloaded or as its API gives them."""

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
"""Attributes that hold what a tool answered, where the observation's own output is empty."""


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
        asked=tuple(unpacked(first(one, "input")) for one in (trace, *roots, *generations)),
        tools=tuple(_tools(inside)) or _told(generations),
        name=text(trace, "name") or next((text(one, "name") for one in roots), ""),
        source=SOURCE,
        began=began,
        failure=next((text(one, "statusMessage") or f"{text(one, 'name')} failed" for one in failed), ""),
    )


def _tools(inside: list[Any]) -> Iterator[ToolUse]:
    """Calls of tools: those that are said to be; where there are none, steps that tell what a tool gave."""
    found = [use for one in inside if (use := _tool(one)) is not None]
    if found:
        yield from found
        return
    seen: set[str] = set()
    for one in inside:
        known = _attributes(one)
        name, output = text(known, "tool.name"), unpacked(first(one, "output"))
        step = as_json([name, known.get("tool.parameters"), output])
        if name and output is not None and step not in seen:  # several steps tell of one call
            seen.add(step)
            yield _used(one, name, output)


def _tool(one: Any) -> ToolUse | None:
    """The call of a tool that an observation is; None if it is none."""
    known = _attributes(one)
    output = unpacked(first(one, "output"))
    if output in (None, "", {}, []):
        output = unpacked(first(known, *_RESULTS)) or output
    named = text(known, "gen_ai.tool.name") or text(known, "tool.name") or text(known, "ai.toolCall.name")
    kind = text(one, "type").upper() == "TOOL" or text(known, "gen_ai.operation.name") == "execute_tool"
    kind = kind or (bool(text(known, "tool.name")) and text(known, "openinference.span.kind") == "TOOL")
    said = messages([output])
    if said and said[0].results:  # LangChain's own message of a tool
        _, name, answer = said[0].results[0]
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


def _told(generations: list[Any]) -> tuple[ToolUse, ...]:
    """What tools answered, where no observation is of them: the last model call has all of it in its messages."""
    given = (after_question(messages_in(unpacked(first(one, "input")))) for one in reversed(generations))
    return next((found for said in given if (found := tools_in_messages(said))), ())


def _attributes(one: Any) -> dict[str, Any]:
    """Its metadata, and the attributes of the span that it came from."""
    known = unpacked(at(one, "metadata"))
    inner = unpacked(at(known, "attributes"))
    return {**(known if isinstance(known, dict) else {}), **(inner if isinstance(inner, dict) else {})}
