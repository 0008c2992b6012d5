"""Results that wait for the model although no known reply requested them: they may be calls and prove nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from results_kit import FAULT, FIRST, Talk, Trial, every_format, play

from golden_words import Golden
from holdfast.checks.trace.max_calls import MaxCalls
from holdfast.checks.trace.side_effect_once import SideEffectOnce
from holdfast.checks.trace.tool_called import ToolCalled
from holdfast.checks.trace.tool_not_called import ToolNotCalled
from holdfast.checks.trace.tool_order import ToolOrder
from holdfast.model.completion import ToolCall
from holdfast.model.observation import Answer, Turn
from holdfast.model.trace import TraceEvent
from holdfast.planes.llm import tool_results
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.openai_responses import OPENAI_RESPONSES
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest, ToolDeclaration, ToolResult
from holdfast.planes.llm.tool_results import ToolResults
from holdfast.protocols.check import Exhibit
from planes_kit import FakeContext, answer, replay, uses

KETTLE = ("search", '{"q":"kettle"}')


def plain(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(tool, arguments.replace(" ", "")) for tool, arguments in found]


@every_format
def test_an_unrequested_result_may_be_a_call_but_meets_no_fault(codec: Codec) -> None:
    trial, talk = Trial(FIRST), Talk(codec)
    talk.user("How many kettles?")
    talk.round("call_1")
    assert trial.reads(talk) == trial.reads(talk, again=True) == ["-"]
    talk.model("Three.")
    talk.user("And pots?")
    assert trial.reads(talk) == ["-"]
    assert (trial.calls, trial.met, trial.context.trace) == ([], 0, [])  # nothing is told before the end
    assert plain(trial.perhaps) == [KETTLE]
    assert "search" in trial.context.notes[0]


@every_format
def test_a_result_with_words_behind_it_may_be_a_call_after_an_unread_reply(codec: Codec) -> None:
    trial = play(codec, "user; reads; unread; round call_1; user (3_steps_left); reads -")
    assert plain(trial.perhaps) == [KETTLE]


def test_a_result_without_a_name_may_belong_to_any_declared_tool() -> None:
    context = FakeContext()
    results = ToolResults(context, lambda: {"mail"}, faulty=True)
    alone = (ChatMessage("tool", results=(ToolResult("call_9", "", "done"),)),)
    tools = tuple([ToolDeclaration(name) for name in ("search", "refund", "mail")])
    asyncio.run(results.settle(ModelRequest("m", alone, tools)))
    results.close()
    assert [(event.tool, event.phase) for event in context.trace] == [("search", "declared"), ("refund", "declared")]


def test_tools_of_other_planes_leave_no_doubt() -> None:
    context, talk = FakeContext(), Talk(OPENAI_CHAT)
    results = ToolResults(context, lambda: {"search"}, faulty=True)
    talk.round("call_1")
    asyncio.run(results.settle(talk.asked()))
    results.close()
    assert (context.trace, context.notes) == ([], [])


def test_the_number_of_possible_calls_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_results, "UNMATCHED_KEPT", 2)
    trial, talk = Trial(), Talk(OPENAI_CHAT)
    talk.user("How many?")
    for n in range(3):
        talk.called(f"call_{n}", f"{n}")
        talk.gave(f"call_{n}")
        trial.reads(talk)
    assert [(event.phase, event.input) for event in trial.context.trace] == [("declared", '{"q": "0"}')]
    assert len(trial.perhaps) == 3


def test_rules_do_not_count_possible_calls() -> None:
    trial, talk = Trial(), Talk(OPENAI_RESPONSES)
    talk.user("How many kettles?")
    trial.asks(talk, "call_1")
    talk.round("call_1")
    trial.reads(talk)
    talk.round("call_2")
    trial.reads(talk)
    trial.results.close()
    trial.context.sink.add(TraceEvent(ts=trial.context.sink.now(), event_type="tool_call", tool="mail"))
    turn = Turn("How many?", "Three.")
    exhibit = Exhibit("Three.", turn, trial.context.observe(Answer(turns=(turn,))), None)
    rules = [
        MaxCalls(max=1, tool="search"),
        SideEffectOnce(tool="search"),
        ToolCalled(tool="search", at_least=2),
        ToolOrder(tools=("search", "search", "mail")),
    ]
    assert [rule.decide(exhibit).passed for rule in rules] == [None] * 4
    assert ToolCalled(tool="search").decide(exhibit).passed is True


def test_tool_not_called_is_unproven_after_a_possible_call() -> None:
    trial, talk = Trial(), Talk(OPENAI_CHAT)
    talk.user("How many kettles?")
    talk.round("call_1")
    trial.reads(talk)
    trial.results.close()
    turn = Turn("How many?", "Three.")
    exhibit = Exhibit("Three.", turn, trial.context.observe(Answer(turns=(turn,))), None)
    assert ToolNotCalled(tool="search").decide(exhibit).passed is None
    assert ToolNotCalled(tool="refund").decide(exhibit).passed is True


def test_calls_in_a_reply_that_is_fetched_twice_are_recorded_once() -> None:
    trial, talk = Trial(FIRST), Talk(OPENAI_RESPONSES)
    call = ToolCall("call_1", "search", '{"q": "kettle"}')
    for _ in range(2):
        trial.results.record_fetched((call,))
    talk.user("How many kettles?")
    talk.round("call_1")
    assert trial.reads(talk) == [FAULT]
    trial.results.record_fetched((call,))
    assert (trial.calls, trial.perhaps) == ([(1, "error")], [])


# Recorded results on their way to the model, for tools that an agent's framework runs itself.


@every_format
def test_the_model_reads_the_recorded_results_in_every_request(codec: Codec) -> None:
    trial, talk = Trial(task=replay(answer("search", {"left": 7}), answer("search", "none left"))), Talk(codec)
    talk.user("How many kettles are left?")
    trial.asks(talk, "c1")
    talk.round("c1")
    assert trial.reads(talk) == ['{"left": 7}']
    trial.asks(talk, "c2", "pot")
    talk.round("c2", "pot")
    assert trial.reads(talk) == ['{"left": 7}', "none left"]
    assert uses(trial.context.recorded) == [("search", 1, 200), ("search", 2, 200)]
    assert trial.context.recorded[0].plane == "tool_result"
    assert [(e.n, e.failed) for e in trial.context.trace] == [(1, False), (2, False)]


def asked_once(*responses: Any, live: bool = False) -> tuple[Trial, list[str]]:
    """A trial in which the model asked for one call, and what it read of the result."""
    from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT

    trial, talk = Trial(task=replay(*responses, live=live)), Talk(OPENAI_CHAT)
    talk.user("How many kettles are left?")
    trial.asks(talk, "c1")
    talk.round("c1")
    return trial, trial.reads(talk)


@pytest.mark.parametrize(
    ("status", "body", "read"),
    [
        (0, None, "Error: search: connection error"),
        (429, None, "Error: 429 Too Many Requests"),
        (500, "it broke", "Error: 500 Internal Server Error: it broke"),
    ],
)
def test_a_recorded_failure_is_an_error_that_the_model_reads(status: int, body: Any, read: str) -> None:
    trial, received = asked_once(answer("search", body, status))
    assert received == [read]
    assert [event.error_type for event in trial.context.trace] == ["tool_error"]


def test_an_unknown_tool_reads_as_a_connection_error_unless_it_is_let_through(golden: Golden) -> None:
    trial, received = asked_once(answer("weather", 1))
    golden(received)
    assert [(u.is_known, u.call) for u in trial.context.recorded] == [(False, "search(q=kettle)")]
    trial, received = asked_once(answer("weather", 1), live=True)
    assert received == ["-"]
    assert [(u.is_known, u.passed) for u in trial.context.recorded] == [(False, True)]


def test_results_pass_if_the_recording_has_only_urls() -> None:
    trial, received = asked_once(answer("https://api.test/*", 1))
    assert (received, trial.context.recorded) == (["-"], [])


def test_the_recorded_latency_includes_the_time_of_the_tool_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(tool_results.asyncio, "sleep", sleep)
    _, received = asked_once(answer("search", "late", latency_ms=60_000))
    assert received == ["late"]
    (seconds,) = waited
    assert 50 < seconds < 60


def test_the_observation_says_that_the_tool_itself_had_run(golden: Golden) -> None:
    from holdfast.model.observation import Answer

    trial, _ = asked_once(answer("search", "recorded"))
    seen = trial.context.observe(Answer(()))
    golden(seen.notes)
    assert uses(seen.recorded) == [("search", 1, 200)]
