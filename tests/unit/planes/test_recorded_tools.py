"""Recorded responses in the place of tools: declared functions of a Python agent, and what all planes share."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import HarnessError, InjectedError
from holdfast.model.codec import encode
from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, ToolRef
from holdfast.model.task import RecordedFiring, RecordedResponse, RecordedUse, Recording, Task
from holdfast.planes import functions, registry
from holdfast.planes.injection.weather import Weather
from holdfast.planes.install import InstalledHooks, install
from holdfast.planes.open_call import activate_weather
from holdfast.planes.recorded_tools import RecordedTools, decode_response
from holdfast.planes.traced_call import CallTrace
from holdfast.protocols.fault import Call, Dropped, Failed, Reply
from plane_weather import TRIAL, fault
from planes_kit import answer, replay, uses

SOURCE = """
import asyncio
asked = []
def search(q): asked.append(q); return 'real ' + q
async def fetch(q): asked.append(q); return 'real ' + q
def rows(q):
    asked.append(q)
    yield 'real'
async def pages(q):
    asked.append(q)
    yield 'real'
def think(prompt): return 'thought ' + prompt
"""


class Tools:
    """A module of wrapped tools, in one replayed trial."""

    def __init__(self, module: ModuleType) -> None:
        self.module: Any = module
        self.seen: list[RecordedUse] = []
        self.ledger: list[FaultMet] = []
        self.events: list[Any] = []

    def replaying(self, task: Task, *injections: Injection) -> Any:
        from msgspec.structs import replace

        trial = replace(TRIAL, task=task, scenario=Scenario("s", injections))
        weather = Weather(trial, self.ledger.append, self.ledger.append, self.seen.append)
        return activate_weather(weather, self.fail, CallTrace(0.0, lambda _, event: self.events.append(event)))

    def fail(self, why: HarnessError) -> None:
        raise AssertionError(why)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tools]:
    module = ModuleType("recorded_functions")
    monkeypatch.setitem(sys.modules, "recorded_functions", module)
    monkeypatch.setattr(registry, "declared", {})
    exec(compile(dedent(SOURCE), "recorded_functions.py", "exec"), module.__dict__)
    refs = tuple(ToolRef(f"recorded_functions:{name}") for name in ("search", "fetch", "rows", "pages"))
    installed: InstalledHooks = install(
        AgentSpec(type="python", tools=refs, llm=(ToolRef("recorded_functions:think"),))
    )
    yield Tools(module)
    installed.remove()


def test_responses_come_in_order_for_each_tool_and_no_tool_is_called(tools: Tools) -> None:
    task = replay(answer("search", "one"), answer("fetch", {"n": 1}), answer("search", [2]), answer("rows", ["a", "b"]))
    with tools.replaying(task):
        m = tools.module
        assert [m.search("x"), m.search("y")] == ["one", [2]]
        assert asyncio.run(m.fetch("x")) == {"n": 1}
        assert list(m.rows("x")) == ["a", "b"]
    assert tools.module.asked == []
    assert uses(tools.seen) == [("search", 1, 200), ("search", 2, 200), ("fetch", 1, 200), ("rows", 1, 200)]
    assert tools.seen[0].call == "search(q=x)"
    assert [(e.tool, e.output, e.unsent) for e in tools.events][:2] == [
        ("search", "one", False),
        ("search", "[2]", False),
    ]


def test_an_async_generator_yields_the_recorded_items(tools: Tools) -> None:
    async def all_pages() -> list[Any]:
        return [page async for page in tools.module.pages("x")]

    with tools.replaying(replay(answer("pages", [1, 2]))):
        assert asyncio.run(all_pages()) == [1, 2]
    assert tools.module.asked == []


@pytest.mark.parametrize(("status", "body"), [(429, {"error": "slow down"}), (500, "oops"), (418, None)])
def test_a_recorded_error_is_raised_with_its_status_and_body(tools: Tools, status: int, body: Any) -> None:
    with tools.replaying(replay(answer("search", body, status))), pytest.raises(InjectedError) as raised:
        tools.module.search("x")
    assert (raised.value.status_code, raised.value.body) == (status, body)
    assert str(raised.value).startswith(str(status))
    assert [(e.status, e.error_type) for e in tools.events] == [(status, "InjectedError")]


def test_status_0_is_a_connection_error(tools: Tools) -> None:
    with tools.replaying(replay(answer("search", None, 0), answer("search", "back"))):
        with pytest.raises(InjectedError, match="search: connection error") as raised:
            tools.module.search("x")
        assert tools.module.search("x") == "back"
    assert raised.value.status_code is None
    assert [event.unsent for event in tools.events] == [True, False]


def test_unknown_calls_and_used_up_tools_get_a_connection_error_and_are_listed(tools: Tools) -> None:
    with tools.replaying(replay(answer("search", "one"))):
        tools.module.search("x")
        with pytest.raises(InjectedError, match="search: the recording"):
            tools.module.search("y")
        with pytest.raises(InjectedError, match="fetch: the recording"):
            asyncio.run(tools.module.fetch("z"))
    assert tools.module.asked == []
    assert [(u.tool, u.is_known, u.passed, u.call) for u in tools.seen] == [
        ("search", True, False, "search(q=x)"),
        ("search", False, False, "search(q=y)"),
        ("fetch", False, False, "fetch(q=z)"),
    ]
    assert [event.unsent for event in tools.events] == [False, True, True]


def test_live_lets_what_is_unknown_through(tools: Tools) -> None:
    with tools.replaying(replay(answer("search", "one"), live=True)):
        assert [tools.module.search("x"), tools.module.search("y")] == ["one", "real y"]
    assert tools.module.asked == ["y"]
    assert [(u.is_known, u.passed) for u in tools.seen] == [(True, False), (False, True)]
    assert [event.unsent for event in tools.events] == [False, False]


def test_model_functions_are_not_tools(tools: Tools) -> None:
    with tools.replaying(replay(answer("think", "recorded"))):
        assert tools.module.think("x") == "thought x"
    assert tools.seen == []


def test_a_function_runs_if_the_recording_has_only_urls(tools: Tools) -> None:
    with tools.replaying(replay(answer("https://api.test/*", {"n": 1}))):
        assert tools.module.search("x") == "real x"
    assert tools.seen == []


def test_latency_is_waited_before_the_answer(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(functions.time, "sleep", waited.append)
    with tools.replaying(replay(answer("search", "late", latency_ms=1500), answer("search", None, 503, 20))):
        assert tools.module.search("x") == "late"
        with pytest.raises(InjectedError):
            tools.module.search("x")
    assert waited == [1.5, 0.02]


def test_calls_of_many_threads_get_each_response_once(tools: Tools) -> None:
    task = replay(*[answer("search", n) for n in range(40)])
    got: list[int] = []
    with tools.replaying(task):
        threads = [threading.Thread(target=lambda: got.append(tools.module.search("x"))) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(got) == list(range(40))
    assert sorted(use.n for use in tools.seen) == list(range(1, 41))


def test_faults_act_around_the_recording(tools: Tools) -> None:
    with tools.replaying(replay(answer("search", "one")), fault("search", "error", on_call=1)):
        with pytest.raises(InjectedError, match="503"):
            tools.module.search("x")
        assert tools.module.search("x") == "one"
    assert [met.effect for met in tools.ledger] == ["met"]
    assert uses(tools.seen) == [("search", 1, 200)]


# -- what all planes share -------------------------------------------------------------------------
async def _real(call: Call) -> Reply:
    return Reply("real")


async def _at_once(ms: float) -> None:
    raise AssertionError("nothing waits")


def ask(recorded: RecordedTools, plane: str, *names: str) -> Any:
    """What one call gets: a value, or its failure."""
    call = Call(plane, names[-1], {"method": "GET"}, 1)
    try:
        return asyncio.run(_value(recorded.wrap_forward(_real, names, _at_once)(call)))  # type: ignore[arg-type]
    except Failed as failed:
        return failed


async def _value(reply: Any) -> Any:
    return (await reply).value


def test_a_url_is_met_by_the_exact_entry_first_then_by_a_glob_in_order() -> None:
    responses = (answer("https://api.test/*", "glob"), answer("https://api.test/users", "users"), answer("*.test/*", 3))
    seen: list[RecordedUse] = []
    recorded = RecordedTools(Recording("s", responses), seen.append)
    assert ask(recorded, "http", "https://api.test/users") == "users"
    assert ask(recorded, "http", "https://api.test/users?page=2") == "glob"
    assert ask(recorded, "http", "http://x.test/any") == 3
    assert isinstance(ask(recorded, "http", "https://api.test/users?page=3"), Dropped)
    assert isinstance(ask(recorded, "http", "https://other.example/"), Dropped)
    assert [use.tool for use in seen[-2:]] == ["https://api.test/*", "https://other.example/"]


def test_an_mcp_tool_is_met_by_server_and_name_first() -> None:
    responses = (answer("price", "any"), answer("shop/price", "shop"), answer("other/price", "other"))
    recorded = RecordedTools(Recording("s", responses), lambda use: None)
    assert [ask(recorded, "mcp", "shop/price", "price") for _ in range(2)] == ["shop", "any"]
    unknown = ask(recorded, "mcp", "shop/price", "price")
    assert (type(unknown), unknown.kind) == (Failed, "rpc_error")


def test_only_tool_calls_are_answered() -> None:
    recorded = RecordedTools(Recording("s"), lambda use: None)
    others = ("llm", "mcp_list", "mcp_read", "service", "context")
    answered = [plane for plane in ("tool", "tool_result", "mcp", *others) if recorded.can_answer(plane, "x")]
    assert answered == ["tool", "tool_result", "mcp"]
    assert recorded.can_answer("http", "https://api.test/")
    assert not recorded.can_answer("http", "https://api.test")


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"a": 1}', {"a": 1}), ("null", None), ('"words"', "words"), ("no JSON {", "no JSON {"), ("", "")],
)
def test_a_response_that_is_not_json_is_text(text: str, value: Any) -> None:
    assert decode_response(text) == value


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=12),
    st.lists(st.sampled_from("abcd"), max_size=20),
)
def test_each_tool_has_its_own_order(recorded: list[tuple[str, int]], calls: list[str]) -> None:
    seen: list[RecordedUse] = []
    responses = tuple(RecordedResponse(tool, str(value)) for tool, value in recorded)
    live = RecordedTools(Recording("s", responses, live=True), seen.append)
    got: dict[str, list[Any]] = {tool: [] for tool in "abcd"}
    for tool in calls:
        got[tool].append(ask(live, "tool", tool))
    for tool, values in got.items():
        had = [value for name, value in recorded if name == tool]
        assert values == [*had, *["real"] * len(values)][: len(values)]
    assert [use.tool for use in seen] == calls


# -- which response a call gets ----------------------------------------------------------------------
ID, OTHER_ID = "0b9d1a52-9d0a-4a5e-8d2e-6f6f3c1f0a11", "f3a1c0de-1111-4222-8333-444455556666"


@pytest.mark.parametrize(
    ("arguments", "call", "best"),
    [
        (['{"q":"a"}', '{"q":"b"}'], {"q": "b"}, 1),
        (['{"q":"a"}', '{"q":"a"}'], {"q": "a"}, 0),
        (["", '{"q":"b"}'], {"q": "c"}, 0),
        ([f'{{"q":"a","id":"{ID}"}}', f'{{"q":"b","id":"{ID}"}}'], {"q": "b", "id": OTHER_ID}, 1),
        (['{"q":"a","n":1}', '{"q":"b","n":2}'], {"q": "b", "n": 77}, 1),
        (['{"at":"2026-01-02T03:04:05Z","q":1}', '{"at":"2026-01-02T03:04:05Z","q":2}'], {"at": "x", "q": 2}, 1),
        (['{"gone":1}', '{"q":"a"}'], {"q": "b", "more": 1}, 0),
        (["[1]", "7"], {}, 0),
    ],
)
def test_a_call_gets_the_response_of_the_call_most_like_it(arguments: list[str], call: Any, best: int) -> None:
    responses = tuple(RecordedResponse("search", str(n), arguments=had) for n, had in enumerate(arguments))
    recorded = RecordedTools(Recording("s", responses), [].append)
    passed = recorded.wrap_forward(real, ("search",), still)
    assert asyncio.run(passed(Call("tool", "search", call, 1))).value == best


async def real(call: Call) -> Reply:
    raise AssertionError(call)


async def still(ms: float) -> None:
    """Nobody waits."""


def test_python_values_are_recreated_only_for_functions() -> None:
    response = RecordedResponse("search", '{"$python":"builtins:tuple","value":[1]}', python=True)
    for plane, value in (("tool", (1,)), ("mcp", {"$python": "builtins:tuple", "value": [1]})):
        passed = RecordedTools(Recording("s", (response,)), [].append).wrap_forward(real, ("search",), still)
        assert asyncio.run(passed(Call(plane, "search", {}, 1))).value == value


@pytest.mark.parametrize("fired", [None, (), (RecordedFiring(1, 2),), (RecordedFiring(1, 1), RecordedFiring(1, 3))])
def test_a_fault_with_a_probability_fires_where_it_fired_in_the_recording(tools: Tools, fired: Any) -> None:
    words = [answer("search", "one")] * 3
    task = Task(("hi",), "replay", recording=Recording("s", tuple(words), seed=7, fired=fired))
    with tools.replaying(task, fault("search", "error", probability=0.5)):
        received = []
        for n in range(3):
            try:
                received.append(tools.module.search(f"made up {n}"))
            except InjectedError:
                received.append("")
    hit = [n for n, text in enumerate(received, 1) if not text]
    assert fired is None or hit == [one.call for one in fired]
    assert [met.nth for met in tools.ledger] == hit


@pytest.mark.parametrize(
    ("had", "reply", "call", "value"),
    [
        (
            {"id": ID},
            {"made": ID, "by": f"/orders/{ID}"},
            {"id": OTHER_ID},
            {"made": OTHER_ID, "by": f"/orders/{OTHER_ID}"},
        ),
        ({"id": ID, "at": 1794225600.25}, [1794225600.25, ID], {"id": ID, "at": 1794225601.5}, [1794225601.5, ID]),
        ({"id": ID}, {"other": OTHER_ID}, {"id": OTHER_ID}, {"other": OTHER_ID}),
        ({"id": ID}, ID, {"id": "none"}, ID),
        ({"id": ID}, ID, {}, ID),
        ({"n": 7}, 7, {"n": 8}, 7),
        ({"n": 483920}, {"n": 483920, "said": "number 483920"}, {"n": 11273}, {"n": 11273, "said": "number 11273"}),
        ({"n": 0.48392, "k": "a"}, [0.48392, "a"], {"n": 0.1127, "k": "a"}, [0.1127, "a"]),
        ({"key": "req-4839"}, "req-4839 is done", {"key": "req-1127"}, "req-1127 is done"),
        ({"a": 1111, "b": 2222}, [1111, 2222], {"a": 2222, "b": 1111}, [2222, 1111]),
        ({"n": 4839}, [48390, 14839, 4839.5], {"n": 1127}, [48390, 14839, 4839.5]),
        ({"n": 4839}, 4839, {"n": "none"}, 4839),
    ],
)
def test_a_reply_that_repeats_an_id_of_its_call_repeats_that_of_the_call_it_answers(
    had: Any, reply: Any, call: Any, value: Any
) -> None:
    response = RecordedResponse("search", encode(reply).decode(), arguments=encode(had).decode())
    passed = RecordedTools(Recording("s", (response,)), [].append).wrap_forward(real, ("search",), still)
    assert asyncio.run(passed(Call("tool", "search", call, 1))).value == value
