"""Who never answered, no fault being why: what the agent did then is not held against it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from execute_sites import trial_of
from holdfast.execute.trace_sink import PROVIDERS_KEPT, LiveSink, find_silent_providers
from holdfast.model.observation import Answer, EndingKind, Turn
from holdfast.model.trace import TraceEvent


def test_names_that_an_agent_makes_up_do_not_fill_the_memory() -> None:
    sink = LiveSink(trial_of())
    for n in range(2 * PROVIDERS_KEPT):
        sink.mark_answered(f"llm:{n}")
    waits = [left(60_000, ts=-1.0, tool=str(n)) for n in (PROVIDERS_KEPT - 1, PROVIDERS_KEPT)]
    sink.trace += waits
    (silent,) = sink.find_unanswered(Answer((Turn("hi", "sorry", 60_000),)))
    assert f" ms for {PROVIDERS_KEPT} " in silent


def left(waited_ms: float, *, ts: float = 0.0, fault: str = "", tool: str = "m", plane: str = "llm") -> TraceEvent:
    kind: Any = "http_call" if plane == "http" else "llm_call"
    return TraceEvent(ts, kind, tool, plane, 1, error_type="client_gone", waited_ms=waited_ms, fault=fault)


def told(latency_ms: float, ending: EndingKind, *events: TraceEvent, answered: float | None = None) -> list[str]:
    times = {} if answered is None else {"llm:m": answered}
    found = find_silent_providers(Answer((Turn("hi", "sorry", latency_ms, ending),)), events, times)
    return [re.search(r" ms for (.*) (?:until|and gave up)", text)[1] for text in found]  # type: ignore[index]


@pytest.mark.parametrize(
    ("latency_ms", "ending", "waited_ms", "slow"),
    [
        (5_200, "answered", 5_000, True),  # the agent's own client gave up, and the agent said so
        (5_200, "raised", 5_000, True),
        (60_000, "answered", 10_000, True),
        (60_000, "answered", 9_000, False),  # it had other things to do
        (300, "answered", 200, False),  # it may have asked two at once
        (300, "timeout", 200, True),
        (300, "timeout", 100, False),
    ],
)
def test_a_wait_is_upstreams_fault_from_ten_seconds_on_or_if_it_was_most_of_the_turn(
    latency_ms: float, ending: EndingKind, waited_ms: float, slow: bool
) -> None:
    assert told(latency_ms, ending, left(waited_ms)) == (["m"] if slow else [])


def test_the_waits_of_a_client_that_tries_again_count_together() -> None:
    waits = [left(5_000, ts=ts) for ts in (0.0, 5.5, 11.0)]
    assert told(16_500, "answered", waits[0]) == []
    assert told(16_500, "answered", *waits) == ["m"]


def test_a_wait_that_a_fault_made_is_not_upstreams() -> None:
    assert told(20_000, "answered", left(19_000, fault="slow")) == []


def test_who_answered_another_call_meanwhile_was_not_silent() -> None:
    assert told(20_000, "answered", left(19_000, ts=1.0), answered=5.0) == []
    assert told(20_000, "answered", left(19_000, ts=1.0), answered=0.5) == ["m"]


def test_a_host_may_be_silent_too() -> None:
    event = left(12_000, tool="GET http://127.0.0.1:9/rows?page=2", plane="http")
    assert told(20_000, "answered", event) == ["GET http://127.0.0.1:9/rows?page=2"]
