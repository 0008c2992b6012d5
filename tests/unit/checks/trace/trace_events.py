"""Trace events for the tests of trace checks."""

from __future__ import annotations

from typing import Any

from holdfast import plugins
from holdfast.model.observation import Observation, Turn
from holdfast.model.trace import Cost, TraceEvent
from holdfast.model.verdict import Finding
from holdfast.protocols.check import Exhibit


def tool(name: str, ts: float = 0.0, input: str = "{}", **more: Any) -> TraceEvent:
    """A call of a Python tool."""
    return TraceEvent(ts, "tool_call", name, "tool", input=input, write=True, **more)


def result(name: str, ts: float = 0.0, **more: Any) -> TraceEvent:
    """The same call as it shows in model traffic."""
    return TraceEvent(ts, "tool_call", name, "tool_result", write=True, **more)


def http(target: str, ts: float = 0.0, **more: Any) -> TraceEvent:
    write = not target.startswith("GET ")
    return TraceEvent(ts, "http_call", target, "http", **{"status": 200, "write": write, **more})


def llm(ts: float = 0.0, tokens: tuple[int, int] | None = (10, 5), usd: float | None = None, **more: Any) -> TraceEvent:
    cost = None if tokens is None else Cost("small-1", *tokens, usd)
    return TraceEvent(ts, "llm_call", "small-1", "llm", cost=cost, **more)


def found(check: str, *trace: TraceEvent, **settings: Any) -> Finding:
    """What the check of that name says of these calls."""
    turn = Turn("?", None)
    finding: Finding = plugins.find("checks", check)(**settings).decide(
        Exhibit("", turn, Observation("t", (turn,), trace=trace))
    )
    return finding
