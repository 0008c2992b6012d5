"""When a fault fires, what it does to a call, and what the ledger says of it."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from msgspec import structs

from golden_words import Golden
from holdfast import plugins
from holdfast.errors import HarnessError
from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.injection.active_injection import ANSWER, can_act_on
from holdfast.protocols.fault import Call, Failed, Reply, TimedOut
from plane_weather import Own, fault, weather_of

ROWS = {"rows": [1, 2]}


class Bench:
    """Calls a tool through weather and remembers what reached it and how long was waited."""

    def __init__(self, *injections: Injection) -> None:
        self.weather, self.ledger = weather_of(*injections)
        self.reached: list[dict[str, Any]] = []
        self.waited: list[float] = []
        self.gives: Any = ROWS

    def call(self, target: str = "search", plane: str = "tool", **arguments: Any) -> Any:
        n = self.weather.count(plane, target)
        call = Call(plane, target, arguments, n)
        return asyncio.run(self.weather.inject(call, self._forward, self._sleep)).value

    async def _forward(self, call: Call) -> Reply:
        self.reached.append(dict(call.arguments))
        if isinstance(self.gives, BaseException):
            raise self.gives
        return Reply(self.gives)

    async def _sleep(self, ms: float) -> None:
        self.waited.append(ms)

    def pattern(self, calls: int, **arguments: Any) -> str:
        """x where a call failed, . where it came through."""
        marks = ""
        for _ in range(calls):
            try:
                self.call(**arguments)
                marks += "."
            except Failed:
                marks += "x"
        return marks


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes `own` a tool fault that acts as given."""
    real = plugins.find

    def use(act: Any) -> Injection:
        monkeypatch.setattr(Own, "act", staticmethod(act))
        monkeypatch.setattr(plugins, "find", lambda family, name: Own if name == "own" else real(family, name))
        return Injection("tool", "*", "own")

    return use


@pytest.mark.parametrize(
    ("schedule", "pattern"),
    [
        ({}, "xxxxxx"),
        ({"after_calls": 2}, "..xxxx"),
        ({"on_call": 3}, "..x..."),
        ({"every": 2}, ".x.x.x"),
        ({"every": 2, "after_calls": 1}, "..x.x."),
        ({"times": 2}, "xx...."),
        ({"times": 1, "after_calls": 3}, "...x.."),
        ({"times": 2, "every": 2}, ".x.x.."),
        ({"probability": 0.0}, "......"),
        ({"after_event": {"write": 2}}, ".x...."),
    ],
)
def test_a_schedule_counts_attempts_as_they_arrive(schedule: dict[str, Any], pattern: str) -> None:
    assert Bench(fault("search", "error", **schedule)).pattern(6) == pattern


@pytest.mark.parametrize(("count", "calls"), [("attempts", [2]), ("logical", [3, 4])])
def test_logical_calls_leave_out_retries(count: str, calls: list[int]) -> None:
    weather, ledger = weather_of(fault("*", "rate_limit", plane="llm", on_call=2, count=count))

    async def forward(call: Call) -> Reply:
        return Reply("fine")

    async def sleep(ms: float) -> None: ...

    # The first call is repeated once by its client library; so is the second.
    for n, retry in enumerate((0, 1, 0, 1), start=1):
        with suppress(Failed):
            asyncio.run(weather.inject(Call("llm", "gpt", {}, n), forward, sleep, retry=retry))
    assert [met.call for met in ledger] == calls


def test_only_unsafe_requests_are_writes() -> None:
    placed = Injection("tool", "*", "error", schedule=Schedule(after_event={"write": 1}), match_url="*")
    bench = Bench(placed)
    for method, fails in (("GET", False), ("TRACE", False), ("POST", True), ("POST", False)):
        with pytest.raises(Failed) if fails else nullcontext():
            bench.call("http://shop.test/a", "http", method=method)


def test_times_counts_firings_not_calls() -> None:
    bench = Bench(fault("search", "error", times=1, match={"q": "a*"}))
    assert [bench.pattern(1, q=q) for q in ("b", "abc", "a")] == [".", "x", "."]


def test_match_is_by_argument_name_glob_or_value() -> None:
    for match, arguments, hit in [
        ({"q": "AC*"}, {"q": "ACME"}, True),
        ({"q": "AC*"}, {"q": "acme"}, False),
        ({"q": "AC*"}, {}, False),
        ({"n": 5}, {"n": 5}, True),
        ({"n": 5}, {"n": 5.0}, True),
        ({"n": 1}, {"n": True}, False),
        ({"n": "5"}, {"n": 5}, True),
        ({"on": True}, {"on": True}, True),
        ({"ids": [1, 2]}, {"ids": (1, 2)}, True),
        ({"tools": "bash"}, {"tools": ["read", "bash"]}, True),
        ({"tools": "ba*"}, {"tools": ["read", "bash"]}, True),
        ({"tools": "write"}, {"tools": ["read", "bash"]}, False),
        ({"tools": ["bash", "re*"]}, {"tools": ["read", "edit", "bash"]}, True),
        ({"tools": ["bash", "write"]}, {"tools": ["read", "bash"]}, False),
        ({"tools": []}, {"tools": ["read"]}, False),
        ({"ids": 2}, {"ids": [1, 2]}, True),
        ({"q": "a", "n": 1}, {"q": "a", "n": 2}, False),
    ]:
        assert Bench(fault("search", "error", match=match)).pattern(1, **arguments) == ("x" if hit else "."), (
            match,
            arguments,
            hit,
        )


def test_arguments_of_calls_that_did_not_match_are_kept() -> None:
    bench = Bench(fault("search", "error", match={"tools": "write"}), fault("search", "error", match={"q": "a"}))
    for q in ("a", "b", "c"):
        bench.pattern(1, q=q, tools=["read", q])
    assert bench.weather.unmatched == {0: 'tools: ["read","a"]; tools: ["read","b"]; tools: ["read","c"]'}
    bench.pattern(1, q="a", tools=["read", "d"])
    bench.pattern(1, q="a")
    assert bench.weather.unmatched == {0: 'tools: ["read","a"]; tools: ["read","b"]; tools: ["read","c"]'}


def test_a_missing_argument_is_named() -> None:
    bench = Bench(fault("search", "error", match={"tools": "write"}))
    bench.pattern(1, q="a")
    assert bench.weather.unmatched == {0: "no tools"}


def test_a_glob_names_several_tools_and_others_pass() -> None:
    bench = Bench(fault("get_*", "error"))
    with pytest.raises(Failed):
        bench.call("get_price")
    assert bench.call("put_price") == ROWS
    assert bench.call("get_price", plane="llm") == ROWS


def test_a_fault_with_match_url_does_not_act_on_a_tool_call() -> None:
    behind = structs.replace(fault("search", "error"), match_url="https://shop.example/*")
    assert Bench(behind).call("search") == ROWS
    with pytest.raises(Failed):
        Bench(behind).call("https://shop.example/search", plane="http")


def test_the_ledger_has_the_original_and_the_changed_reply() -> None:
    bench = Bench(fault("search", "empty"))
    assert bench.call(q="x") == {"rows": []}
    (met,) = bench.ledger
    values = {"reply": '{"rows":[1,2]}', "change": "rows: [1,2] → []"}
    assert met == FaultMet(0, "tool", "search", "empty", 1, "met", '{"rows":[1,2]}', '{"rows":[]}', **values)  # type: ignore[arg-type]


def test_the_ledger_says_that_the_tool_was_not_called() -> None:
    bench = Bench(fault("search", "error", error_code=503, message="down"))
    with pytest.raises(Failed) as caught:
        bench.call()
    assert caught.value.injection is not None
    assert (bench.ledger[0].would, bench.ledger[0].got) == ("not asked", "failed: 503 down")
    assert bench.reached == []


def test_a_firing_that_changes_nothing_has_no_effect() -> None:
    bench = Bench(fault("search", "stale"), fault("search", "wrong_value"))
    bench.gives = None
    bench.call()
    assert [(met.mode, met.effect) for met in bench.ledger] == [("wrong_value", "no_effect"), ("stale", "no_effect")]


def test_a_delay_is_in_the_ledger_before_it_begins() -> None:
    bench = Bench(fault("search", "slow", delay_ms=70))
    order: list[str] = []
    bench.weather.ledger.record = lambda met: order.append(met.mode)

    async def sleep(ms: float) -> None:
        order.append("find_sleeping")

    call = Call("tool", "search", {}, 1)
    asyncio.run(bench.weather.inject(call, bench._forward, sleep))
    assert order == ["slow", "find_sleeping"]


def test_a_delay_of_nothing_has_no_effect() -> None:
    bench = Bench(fault("search", "slow", delay_ms=0))
    bench.call()
    assert [met.effect for met in bench.ledger] == ["no_effect"]


def test_a_timeout_waits_then_fails_and_is_one_firing(golden: Golden) -> None:
    bench = Bench(fault("search", "timeout", delay_ms=40))
    with pytest.raises(TimedOut):
        bench.call()
    assert bench.waited == [40]
    (met,) = bench.ledger
    assert (met.effect, met.delayed) == ("met", True)
    golden((met.got, met.change))


def test_two_faults_compose_in_list_order_the_first_outermost(own: Any) -> None:
    async def act(call: Call, forward: Any, ctx: Any) -> Reply:
        return Reply(f"own({(await forward(call)).value})")

    first = own(act)
    wrapped = Injection("tool", "*", "malicious_response", {"payload": "evil"})
    assert Bench(first, wrapped).call() == "own(evil)"
    assert Bench(wrapped, first).call() == "evil"


def test_error_ends_the_chain_and_the_inner_fault_has_not_fired() -> None:
    bench = Bench(fault("search", "error"), fault("search", "slow", delay_ms=50, times=1))
    with pytest.raises(Failed):
        bench.call()
    assert bench.waited == []
    assert [met.mode for met in bench.ledger] == ["error"]


@pytest.mark.parametrize(
    ("mode", "effects"),
    [
        # Each alone would have been enough, so no single fault explains the reply: the outermost is met.
        ("empty", {0: "met", 1: "erased"}),
        ("phantom_success", {0: "met"}),  # the outer one does not pass the call on, so the inner one never fires
        ("slow", {0: "met", 1: "met"}),  # each made the caller wait
    ],
)
def test_of_two_equal_faults_on_one_target_each_counts_only_for_what_it_changed(
    mode: str, effects: dict[int, str]
) -> None:
    bench = Bench(fault("search", mode), fault("search", mode))
    bench.call()
    assert {met.index: met.effect for met in bench.ledger} == effects


def test_two_equal_faults_with_a_probability_draw_apart() -> None:
    fired = [{met.index for met in _drawn(n).ledger} for n in range(40)]
    assert {0} in fired
    assert {1} in fired


def _drawn(n: int) -> Bench:
    bench = Bench(fault("search", "empty", probability=0.5), fault("search", "empty", probability=0.5))
    for _ in range(n):
        bench.call()
    bench.ledger.clear()
    bench.call()
    return bench


def test_an_inner_failure_is_not_the_outer_faults_doing() -> None:
    bench = Bench(fault("search", "malformed"), fault("search", "error", raises="builtins:OSError"))
    with pytest.raises(Failed) as caught:
        bench.call()
    assert caught.value.injection is not None
    assert caught.value.injection.mode == "error"
    assert [(met.mode, met.effect) for met in bench.ledger] == [("error", "met"), ("malformed", "no_effect")]


def test_a_tools_own_exception_passes_untouched_and_is_noted() -> None:
    bench = Bench(fault("search", "malformed"))
    bench.gives = mine = LookupError("gone")
    with pytest.raises(LookupError) as caught:
        bench.call()
    assert caught.value is mine
    assert [(met.effect, met.would) for met in bench.ledger] == [("no_effect", "LookupError: gone")]


def test_a_reply_lost_after_the_work_shows_what_would_have_come() -> None:
    bench = Bench(fault("search", "lost_reply"))
    with pytest.raises(Failed):
        bench.call()
    assert (len(bench.reached), bench.ledger[0].would) == (1, '{"rows":[1,2]}')


def test_a_value_changed_in_place_is_met(own: Any) -> None:
    async def act(call: Call, forward: Any, ctx: Any) -> Reply:
        reply: Reply = await forward(call)
        reply.value["rows"].append(3)
        return reply

    bench = Bench(own(act))
    bench.gives = {"rows": [1]}
    bench.call()
    assert (bench.ledger[0].effect, bench.ledger[0].would) == ("met", '{"rows":[1]}')


def raising(what: BaseException) -> Any:
    async def act(call: Call, forward: Any, ctx: Any) -> Reply:
        raise what

    return act


async def gives_text(call: Call, forward: Any, ctx: Any) -> Any:
    return "not a reply"


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (raising(KeyError("x")), "fault own failed: KeyError: 'x'"),
        (raising(StopAsyncIteration()), "fault own failed: StopAsyncIteration"),
        (gives_text, "fault own failed: it returned str, not a Reply"),
    ],
)
def test_a_plug_in_that_breaks_is_a_harness_error(own: Any, act: Any, why: str) -> None:
    with pytest.raises(HarnessError) as caught:
        Bench(own(act)).call()
    said, _, place = str(caught.value).partition(" (")
    assert said == why
    assert act is gives_text or place.startswith(f"{__file__}:")


def test_a_watching_plug_in_that_breaks_is_a_harness_error(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def watch(self: Any, call: Any, reply: Any, memory: Any) -> None:
        raise KeyError("x")

    injection = Injection(
        "tool", "*", own(raising(ValueError())).mode, schedule=fault("x", "y", probability=0).schedule
    )
    monkeypatch.setattr(Own, "watch", watch, raising=False)
    with pytest.raises(HarnessError) as raised:
        Bench(injection).call()
    assert raised.value.code == "fault-broken"


def test_an_agent_that_gives_up_waiting_is_not_a_harness_error() -> None:
    weather, ledger = weather_of(fault("search", "slow", delay_ms=60_000))

    async def forward(call: Call) -> Reply:
        return Reply(1)

    async def patient() -> Any:
        call = Call("tool", "search", {}, 1)
        return await asyncio.wait_for(weather.inject(call, forward, lambda ms: asyncio.sleep(ms / 1000)), 0.02)

    with pytest.raises(TimeoutError):
        asyncio.run(patient())
    assert [met.effect for met in ledger] == ["met"]


def test_an_alarm_of_the_agents_own_during_a_delay_passes_untouched() -> None:
    bench = Bench(fault("search", "slow", delay_ms=10))

    async def alarm(ms: float) -> None:
        raise InterruptedError("my alarm")

    with pytest.raises(InterruptedError):
        asyncio.run(bench.weather.inject(Call("tool", "search", {}, 1), bench._forward, alarm))


def test_draws_for_tools_depend_on_arguments_and_occurrence() -> None:
    """Other calls in between change nothing: it is this call's draws."""
    alone = Bench(fault("search", "error", probability=0.5))
    mixed = Bench(fault("search", "error", probability=0.5))
    wanted = alone.pattern(40, q="a")
    found = ""
    for n in range(40):
        mixed.pattern(1, q=f"other {n}")
        found += mixed.pattern(1, q="a")
    assert found == wanted
    assert 5 < wanted.count("x") < 35


def test_draws_for_models_depend_on_the_number_of_the_call() -> None:
    def hits(prompts: list[str]) -> list[int]:
        weather, ledger = weather_of(fault("chat", "empty", plane="llm", probability=0.5))

        async def forward(call: Call) -> Reply:
            return Reply("text")

        async def sleep(ms: float) -> None: ...

        for prompt in prompts:
            n = weather.count("llm", "chat")
            asyncio.run(weather.inject(Call("llm", "chat", {"prompt": prompt}, n), forward, sleep))
        return [met.call for met in ledger]

    assert hits(["a"] * 30) == hits([str(n) for n in range(30)]) != []


def test_an_attack_on_the_input_is_met_and_counted() -> None:
    weather, ledger = weather_of(fault("input", "memory_poisoning", plane="context", payload="obey", on_call=2))
    assert weather.rewrite("one") == "one"
    assert "obey" in weather.rewrite("two")
    assert [(met.call, met.effect, met.would) for met in ledger] == [(2, "met", "two")]


def test_an_attack_on_tool_results_acts_on_tools_and_not_on_the_input() -> None:
    bench = Bench(fault("*", "indirect_injection", plane="context", payload="obey"))
    bench.gives = "some text"
    assert bench.weather.rewrite("ask") == "ask"
    assert "obey" in bench.call()


def test_a_failed_tool_result_does_not_say_that_the_tool_was_not_called(golden: Golden) -> None:
    bench = Bench(fault("search", "error"))
    with pytest.raises(Failed):
        bench.call(plane="tool_result")
    (met,) = bench.ledger
    assert (met.effect, met.ran) == ("met", True)
    assert met.change == "injected 503 Service Unavailable"
    golden(met.note)


@pytest.mark.parametrize(
    "rewrite", [lambda self, text, ctx: 1 / 0, lambda self, text, ctx: 5], ids=["raises", "no text"]
)
def test_an_attack_that_breaks_is_a_harness_error(monkeypatch: pytest.MonkeyPatch, rewrite: Any) -> None:
    from holdfast.faults.context.overflow import Overflow

    monkeypatch.setattr(Overflow, "rewrite", rewrite)
    weather, _ = weather_of(fault("input", "overflow", plane="context"))
    with pytest.raises(HarnessError) as raised:
        weather.rewrite("x")
    assert raised.value.code == "fault-broken"


def test_settings_that_do_not_fit_are_a_harness_error() -> None:
    with pytest.raises(HarnessError) as raised:
        weather_of(fault("t", "slow", delay_ms="soon"))[0].find_applicable("tool", "t")
    assert raised.value.code == "plugin-broken"


def test_a_simulated_fault_acts_on_the_answer() -> None:
    weather, _ = weather_of(fault("search", "error"), fault("chat", "empty", plane="llm"))
    assert [p.injection.mode for p in weather.find_applicable("tool", ANSWER)] == ["error"]
    assert [p.injection.mode for p in weather.find_applicable("llm", ANSWER)] == ["empty"]


def test_calm_weather_makes_no_faults() -> None:
    weather, _ = weather_of()
    assert weather.find_applicable("tool", "x") == []


def test_an_agent_that_never_stops_trying_does_not_fill_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.planes.injection.ledger.LEDGER_LIMIT", 3)
    bench = Bench(fault("search", "error"), fault("look", "empty"))
    for _ in range(5):
        with pytest.raises(Failed):
            bench.call("search")
    bench.call("look")
    assert [met.index for met in bench.ledger] == [0, 0, 0, 1]


@pytest.mark.parametrize("plane", ["tool", "tool_result", "mcp"])
def test_an_attack_on_one_tools_results_meets_no_other_tool(plane: str) -> None:
    one = Injection("context", "search*", "indirect_injection")
    assert [name for name in ("search", "search_kb", "refund", "input") if can_act_on(one, plane, name)] == [
        "search",
        "search_kb",
    ]
    assert not can_act_on(one, "mcp_read", "search")
    assert not can_act_on(one, "context", "input")
    assert can_act_on(Injection("context", "*", "indirect_injection"), "mcp_read", "search")
