"""A call that a fault held back until the agent left never reached the other side: it is no write."""

from __future__ import annotations

import asyncio

from holdfast.checks.trace.calls import is_carried_out
from holdfast.model.scenario import Injection
from holdfast.model.trace import TraceEvent
from holdfast.protocols.fault import Call, Reply
from planes_kit import FakeContext

URL = "https://pay.example/charge"


def told(mode: str, *, leaves: bool) -> TraceEvent:
    """What the trace has of a payment that meets a fault."""
    context = FakeContext([Injection("tool", "pay", mode, match_url="https://pay.example/*")])

    async def sleep(ms: float) -> None:
        if leaves:
            raise ConnectionResetError("the client gave up waiting")

    async def forward(call: Call) -> Reply:
        return Reply({"ok": True})

    async def main() -> None:
        call = Call("http", URL, {}, context.injector.count("http", URL))
        try:
            await context.injector.inject(call, forward, sleep)
        except Exception:
            return

    asyncio.run(main())
    context.sink.add(
        TraceEvent(0.0, "http_call", f"POST {URL}", "http", 1, error_type="client_gone", write=True, fault=mode)
    )
    return context.trace[0]


def test_a_slow_call_that_the_agent_left_before_it_was_passed_on_was_not_made() -> None:
    event = told("slow", leaves=True)
    assert event.unsent
    assert is_carried_out(event) is False


def test_a_slow_call_that_was_passed_on_was_made() -> None:
    event = told("slow", leaves=False)
    assert not event.unsent
    assert is_carried_out(event) is True


def test_a_call_that_a_fault_answered_was_not_made_and_one_whose_reply_was_lost_was() -> None:
    assert told("error", leaves=False).unsent
    assert not told("lost_reply", leaves=False).unsent
