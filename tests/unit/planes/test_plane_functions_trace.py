"""Every call of a declared function is an event of the trace, and costs the agent nothing else."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from itertools import permutations
from textwrap import dedent
from time import perf_counter
from types import ModuleType
from typing import Any

import pytest

from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection
from holdfast.model.spec import AgentSpec, ToolRef
from holdfast.model.trace import EVENTS_KEPT, TEXT_KEPT, TraceEvent
from holdfast.planes import registry
from holdfast.planes.install import InstalledHooks, install
from holdfast.planes.open_call import activate_weather
from holdfast.planes.traced_call import CallTrace
from plane_weather import fault, weather_of


class Traced:
    """A module of functions, wrapped, and what the trace heard of them."""

    def __init__(self) -> None:
        self.module = ModuleType("traced_tools")
        self.installed = InstalledHooks()
        self.reported: list[TraceEvent] = []
        self.ledger: list[FaultMet] = []

    def define(self, source: str, *tools: str, llm: tuple[str, ...] = ()) -> Any:
        exec(compile(dedent(source), "traced_tools.py", "exec"), self.module.__dict__)
        refs = tuple(ToolRef(f"traced_tools:{name}") for name in tools)
        models = tuple(ToolRef(f"traced_tools:{name}") for name in llm)
        self.installed = install(AgentSpec(type="python", tools=refs, llm=models))
        return self.module

    def watched(self, *injections: Injection, early: bool = False) -> Any:
        weather, self.ledger = weather_of(*injections)
        watch = CallTrace(perf_counter(), lambda _, event: self.reported.append(event), early=early)
        return activate_weather(weather, lambda broke: pytest.fail(str(broke)), watch)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    made = Traced()
    monkeypatch.setitem(sys.modules, "traced_tools", made.module)
    monkeypatch.setattr(registry, "declared", {})
    yield made
    made.installed.remove()


def test_a_call_records_its_arguments_its_result_and_its_time(traced: Traced) -> None:
    m = traced.define("def look(q, n=1, *, deep=False): return {'q': q}", "look")
    with traced.watched():
        m.look("ACME", deep=True)
        m.look("ACME")
    first, second = traced.reported
    assert (first.event_type, first.tool, first.plane, first.n, first.write) == ("tool_call", "look", "tool", 1, True)
    assert first.input == '{"deep":true,"n":1,"q":"ACME"}'
    assert first.output == '{"q":"ACME"}'
    assert (first.error_type, first.fault, first.status) == ("", "", None)
    assert second.n == 2
    assert 0 <= first.ts <= second.ts < 5
    assert first.duration_ms >= 0


def test_a_model_function_is_a_model_call_and_no_write(traced: Traced) -> None:
    m = traced.define("def model(prompt): return 'hi'", llm=("model",))
    with traced.watched():
        m.model("hello")
    assert (traced.reported[0].event_type, traced.reported[0].plane, traced.reported[0].write) == (
        "llm_call",
        "llm",
        False,
    )


def test_an_exception_of_a_tool_is_recorded_and_passes(traced: Traced) -> None:
    m = traced.define("def look(q): raise KeyError(q)", "look")
    with traced.watched(), pytest.raises(KeyError):
        m.look("x")
    assert traced.reported[0].error_type == "KeyError"


SAME_MODE = [
    fault("look", "error_in_body", message="one"),
    fault("look", "error_in_body", message="two"),
    fault("look", "malicious_response", payload="one"),
    fault("look", "malicious_response", payload="two"),
    fault("look", "oversized", bytes=40),
    fault("look", "oversized", bytes=90),
    fault("look", "slow", delay_ms=1),
    fault("look", "empty"),
]


@pytest.mark.parametrize("stack", [*permutations(SAME_MODE, 2), *permutations(SAME_MODE[:5], 3)])
def test_a_call_records_the_modes_that_the_ledger_has_as_met(traced: Traced, stack: tuple[Injection, ...]) -> None:
    m = traced.define("def look(): return 'two of them'", "look")
    with traced.watched(*stack):
        m.look()
    (event,) = traced.reported
    met = {entry.mode for entry in traced.ledger if entry.effect == "met"}
    assert met
    assert set(event.fault.split("+")) == met


def test_faults_that_undo_each_other_are_not_recorded(traced: Traced) -> None:
    m = traced.define("def look(): return {'a': 1}", "look")
    there, back = fault("look", "schema_drift", rename={"b": "a"}), fault("look", "schema_drift", rename={"a": "b"})
    with traced.watched(there, back):
        m.look()
    (event,) = traced.reported
    assert event.fault == ""


def test_the_modes_of_the_faults_that_it_met_are_reported(traced: Traced) -> None:
    m = traced.define("def look(q): return 'real'", "look")
    with traced.watched(fault("look", "slow", delay_ms=1), fault("look", "error", error_code=503, times=1)):
        with pytest.raises(RuntimeError):
            m.look("x")
        assert m.look("x") == "real"
    assert [(e.fault, e.status, e.error_type) for e in traced.reported] == [
        ("slow+error", 503, "InjectedError"), ("slow", None, "")
    ]  # fmt: skip


def test_coroutines_and_generators_are_recorded_once_each(traced: Traced) -> None:
    m = traced.define(
        """
        async def awaited(q): return q
        def items(q):
            got = yield q
            yield got
        async def stream(q):
            yield q
        """,
        "awaited", "items", "stream",
    )  # fmt: skip

    async def use() -> None:
        assert await m.awaited("a") == "a"
        sent = m.items("b")
        assert next(sent) == "b"
        assert sent.send("back") == "back"
        assert list(sent) == []
        assert [item async for item in m.stream("c")] == ["c"]

    with traced.watched():
        asyncio.run(use())
    assert [(e.tool, e.phase, e.error_type) for e in traced.reported] == [
        ("awaited", "done", ""), ("items", "done", ""), ("stream", "done", "")
    ]  # fmt: skip


def test_a_generator_that_is_left_early_or_raises_is_reported(traced: Traced) -> None:
    m = traced.define("def items(q):\n    yield q\n    raise ValueError(q)", "items")
    with traced.watched():
        left = m.items("a")
        next(left)
        left.close()
        with pytest.raises(ValueError, match="b"):
            list(m.items("b"))
    assert [e.error_type for e in traced.reported] == ["", "ValueError"]


def test_methods_are_reported_without_the_object(traced: Traced) -> None:
    m = traced.define(
        "class Box:\n    def look(self, q, *rest, **more): return q\nbox = Box()\nlook = box.look", "look"
    )
    with traced.watched():
        m.box.look("a", 1, deep=True)
    assert traced.reported[0].input == '{"deep":true,"q":"a","rest":[1]}'


def test_arguments_are_reported_as_they_were_before_the_call(traced: Traced) -> None:
    m = traced.define("def pop(items):\n    items.clear()\n    return items", "pop")
    with traced.watched():
        m.pop([1, 2])
    assert traced.reported[0].input == '{"items":[1,2]}'


def test_long_values_are_shortened_and_still_distinguished(traced: Traced) -> None:
    m = traced.define("def look(q): return q", "look")
    with traced.watched():
        m.look("x" * 10_000 + "1" + "x" * 10_000)
        m.look("x" * 10_000 + "2" + "x" * 10_000)
    assert all(len(e.input) <= TEXT_KEPT and len(e.output) <= TEXT_KEPT for e in traced.reported)
    assert traced.reported[0].identity != traced.reported[1].identity


@pytest.mark.parametrize("odd", [object(), {1, 2}, {(1, 2): 3}, "\ud800", b"\xff" * 9000, float("nan"), 2**80])
def test_odd_values_never_harm_the_call_and_can_be_stored(traced: Traced, odd: Any) -> None:
    from holdfast.model.codec import create_decoder, encode

    m = traced.define("def look(q): return q", "look")
    with traced.watched():
        assert m.look(odd) is odd
    assert create_decoder(TraceEvent).decode(encode(traced.reported[0])) == traced.reported[0]
    assert " at 0x" not in traced.reported[0].input + traced.reported[0].output


def test_the_idempotency_key_is_reported(traced: Traced) -> None:
    m = traced.define("def pay(amount, idempotency_key=None): return 1", "pay")
    with traced.watched():
        m.pay(1, idempotency_key="k1")
        m.pay(1)
    assert [e.idempotency for e in traced.reported] == ["k1", ""]


def test_an_agent_that_never_stops_calling_is_reported_up_to_a_limit(traced: Traced) -> None:
    m = traced.define("def look(): return 1", "look")
    with traced.watched():
        for _ in range(EVENTS_KEPT + 50):
            m.look()
    assert len(traced.reported) == EVENTS_KEPT + 1  # one too many: so it is known that some are missing


def test_early_a_call_is_reported_before_it_is_made(traced: Traced) -> None:
    m = traced.define("def look(q): return q", "look")
    with traced.watched(early=True):
        m.look("x")
    assert [e.phase for e in traced.reported] == ["unfinished", "done"]


def test_a_slow_call_that_is_cancelled_before_it_is_made_is_reported_as_unsent(traced: Traced) -> None:
    m = traced.define("async def pay(): return 1", "pay")

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(m.pay(), 0.02)

    with traced.watched(fault("pay", "slow", delay_ms=5_000)):
        asyncio.run(main())
    with traced.watched(fault("pay", "slow", delay_ms=1)):
        asyncio.run(m.pay())
    assert [(e.fault, e.unsent) for e in traced.reported] == [("slow", True), ("slow", False)]
