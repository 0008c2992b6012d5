"""What the ledger has of faults on the wire: before a delay, and `no_effect` where nothing was there to break."""

import asyncio

import pytest
from llm_replies import ASKED, BOTH, SAID

from holdfast.execute.context import LiveContext
from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.protocols.fault import Call, Failed, Reply


class Asking:
    """A trial in which a model is asked by way of these faults."""

    def __init__(self, *modes, stream=True, **settings):
        injections = tuple(Injection("llm", "*", mode, settings, Schedule()) for mode in modes)
        self.context = LiveContext(Trial("0123456789ab", "contract", Scenario("s", injections), Task(("hi",))))
        self.stream = stream
        self.at_delay = []

    def ask(self, value):
        async def forward(call):
            return Reply(value)

        async def sleep(ms):
            self.at_delay.append((ms, [met.mode for met in self.context.injector.ledger]))

        n = self.context.injector.count("llm", "gpt-4o")
        call = Call("llm", "gpt-4o", {"stream": self.stream}, n)
        return asyncio.run(self.context.injector.inject(call, forward, sleep)).value

    @property
    def effects(self):
        return [(met.mode, met.call, met.effect) for met in self.context.injector.ledger]


def test_a_fault_that_found_nothing_to_break_is_not_met():
    for mode, value, stream, effect in [
        ("malformed_tool_call", ASKED, True, "met"),
        ("malformed_tool_call", SAID, True, "no_effect"),
        ("wrong_args", BOTH, True, "met"),
        ("wrong_args", SAID, True, "no_effect"),
        ("unknown_tool", SAID, True, "met"),
        ("odd_chunks", SAID, True, "met"),
        ("odd_chunks", SAID, False, "no_effect"),
        ("empty_choices", SAID, True, "met"),
        ("empty_choices", SAID, False, "met"),
        ("truncated_response", ASKED, True, "no_effect"),
        ("content_filter", ASKED, True, "met"),
        ("stream_cut", ASKED, True, "met"),
    ]:
        asking = Asking(mode, stream=stream)
        asking.ask(value)
        assert asking.effects == [(mode, 1, effect)], (mode, value, stream, effect)


def test_slow_tokens_is_in_the_ledger_before_the_delay_begins():
    asking = Asking("slow_tokens", ttft_ms=40)
    assert asking.ask(SAID).text == SAID.text
    assert asking.at_delay == [(40, ["slow_tokens"])]


def test_repeat_tool_call_is_met_from_the_second_reply_on():
    asking = Asking("repeat_tool_call")
    assert asking.ask(ASKED) == ASKED
    assert asking.ask(SAID).tool_calls
    assert [effect for _, _, effect in asking.effects] == ["no_effect", "met"]


def test_faults_on_the_wire_compose_in_list_order():
    asking = Asking("stream_cut", "unknown_tool")
    received = asking.ask(SAID)
    assert (received.tool_calls, len(received.deltas)) == ((), 1)
    assert [mode for mode, _, _ in asking.effects] == ["unknown_tool", "stream_cut"]


def test_a_refusal_ends_the_chain():
    asking = Asking("quota", "stream_cut")
    with pytest.raises(Failed, match="quota"):
        asking.ask(SAID)
    assert asking.effects == [("quota", 1, "met")]
