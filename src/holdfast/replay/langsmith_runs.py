"""Runs of LangSmith to sessions: a trace is a tree of runs, its tools are runs of the type tool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from holdfast.replay.foreign_json import at, decoded, first, items, lasted_ms, seconds, text
from holdfast.replay.foreign_messages import content_text
from holdfast.replay.foreign_trace import ForeignTrace, Found, ToolUse, session_of

SOURCE = "langsmith"


class LangSmithRun(Struct, frozen=True):
    """One run, as the API gives it or an export has it."""

    id: str
    kind: str
    name: str = ""
    parent: str = ""
    trace: str = ""
    inputs: Any = None
    outputs: Any = None
    error: str = ""
    began: float = 0.0
    latency_ms: float = 0.0


def matches(document: Any) -> bool:
    """Whether this is a run, or a list of runs."""
    one = document[0] if isinstance(document, list) and document else document
    one = items(one, "runs")[0] if items(one, "runs") else one
    return isinstance(at(one, "run_type"), str)


def read(document: Any) -> Iterator[Found]:
    """A session for every trace among the runs."""
    listed = document if isinstance(document, list) else items(document, "runs") or [document]
    return sessions_of(run for one in listed for run in _flattened(one, ""))


def sessions_of(runs: Iterable[LangSmithRun]) -> Iterator[Found]:
    """A session for every root among the runs: one whose parent is not there."""
    known = {run.id: run for run in runs}
    below: defaultdict[str, list[LangSmithRun]] = defaultdict(list)
    for run in known.values():
        below[run.parent if run.parent in known else ""].append(run)
    for root in below[""]:
        yield session_of(_trace(root, below))


def _trace(root: LangSmithRun, below: dict[str, list[LangSmithRun]]) -> ForeignTrace:
    inner = list(_descendants(root, below))
    models = [one.inputs for one in sorted(inner, key=lambda run: run.began) if one.kind == "llm"]
    return ForeignTrace(
        id=root.id,
        asked=(root.inputs, *models[:1]),
        tools=tuple(_tool(run) for run in _outer_tools(root, below)),
        name=root.name,
        source=SOURCE,
        began=root.began or None,
        failure=root.error,
    )


def _descendants(root: LangSmithRun, below: dict[str, list[LangSmithRun]]) -> Iterator[LangSmithRun]:
    waiting = list(below.get(root.id, ()))
    while waiting:
        run = waiting.pop()
        yield run
        waiting += below.get(run.id, ())


def _outer_tools(root: LangSmithRun, below: dict[str, list[LangSmithRun]]) -> Iterator[LangSmithRun]:
    """Tools that the agent called; what a tool calls is its own affair."""
    waiting = list(below.get(root.id, ()))
    while waiting:
        run = waiting.pop()
        if run.kind == "tool":
            yield run
        else:
            waiting += below.get(run.id, ())


def _tool(run: LangSmithRun) -> ToolUse:
    return ToolUse(run.name, _output(run.outputs), run.error, None, run.latency_ms, run.began)


def _output(outputs: Any) -> Any:
    """What a tool gave: LangChain wraps it as `output`, and that in a message."""
    given = outputs["output"] if isinstance(outputs, dict) and set(outputs) == {"output"} else outputs
    inner = at(given, "kwargs") or given
    if isinstance(inner, dict) and "content" in inner and (inner.get("type") == "tool" or "tool_call_id" in inner):
        return decoded(content_text(inner["content"]))
    return decoded(given)


def _flattened(value: Any, parent: str) -> Iterator[LangSmithRun]:
    """A run and those below it, which an export may have inside of it."""
    waiting = [(value, parent)]
    while waiting:
        one, above = waiting.pop()
        id = text(one, "id")
        if not id:
            continue
        yield LangSmithRun(
            id=id,
            kind=text(one, "run_type"),
            name=text(one, "name"),
            parent=text(one, "parent_run_id") or above,
            trace=text(one, "trace_id"),
            inputs=first(one, "inputs"),
            outputs=at(one, "outputs"),
            error=text(one, "error"),
            began=seconds(at(one, "start_time")) or 0.0,
            latency_ms=lasted_ms(at(one, "start_time"), at(one, "end_time")),
        )
        waiting += [(child, id) for child in items(one, "child_runs")]
