"""Tool results in model traffic: a fault acts once on each, by tool name, and its text then stays the same."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from results_kit import FAULT, FIRST, Talk, Trial

from holdfast.model.completion import ToolCall
from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest, ToolResult
from holdfast.planes.llm.tool_results import ToolResults
from planes_kit import FakeContext

ROWS = '{"rows": [{"id": 1, "total": 123}, {"id": 2, "total": 456}]}'


def asked(*results):
    return ModelRequest("gpt", (ChatMessage("tool", results=results),))


def result(key="call_1", text=ROWS, name="search"):
    return ToolResult(key, name, text, '{"q": "ACME"}')


def settle(context, *requests, elsewhere=frozenset, faulty=True):
    """The model asks for each call before its result comes, and answers each request."""
    results = ToolResults(context, elsewhere, faulty=faulty)
    asked_for = set()

    async def main():
        found = []
        for request in requests:
            new = [one for one in request.results if one.key not in asked_for]
            asked_for.update(one.key for one in new)
            results.record_calls(tuple(ToolCall(one.key, one.name, one.arguments) for one in new), ModelRequest("gpt"))
            found.append(await results.settle(request))
            results.mark_read(results.list_unread(found[-1].values()))
        return found

    found = asyncio.run(main())
    results.close()
    return found


def test_a_repeated_result_meets_a_fault_once_and_keeps_its_text():
    context = FakeContext([Injection("tool", "search", "wrong_value")])
    first, second = settle(context, asked(result()), asked(result(), result("call_2", "plain")))
    assert first["call_1"] == second["call_1"]
    assert first["call_1"].text != ROWS
    assert [(m.plane, m.target, m.call, m.mode) for m in context.ledger if m.effect == "met"] == [
        ("tool_result", "search", 1, "wrong_value")
    ]
    assert context.ledger[0].ran


def test_a_different_result_with_the_same_key_is_another_call():
    context = FakeContext([Injection("tool", "search", "empty", schedule=Schedule(on_call=2))])
    results = ToolResults(context, frozenset, faulty=True)
    found = []
    for text in (ROWS, '{"rows": [1]}'):
        results.record_calls((ToolCall("", "search", '{"q": "ACME"}'),), ModelRequest("gpt"))
        found.append(asyncio.run(results.settle(asked(result("search#1", text)))))
    assert found[0] == {}
    assert found[1]["search#1"].text


def test_an_error_becomes_the_text_of_a_failed_result():
    context = FakeContext([Injection("tool", "search", "error", {"error_code": 503})])
    (changed,) = settle(context, asked(result()))
    assert changed["call_1"].text == "Error: 503 Service Unavailable"
    assert changed["call_1"].failed
    assert context.trace[0].error_type == "tool_error"
    assert context.trace[0].fault == "error"


def test_lost_reply_says_that_the_tool_ran():
    context = FakeContext([Injection("tool", "search", "lost_reply")])
    (changed,) = settle(context, asked(result()))
    assert changed["call_1"].failed
    assert [(met.mode, met.effect, met.ran) for met in context.ledger] == [("lost_reply", "met", True)]


@pytest.mark.parametrize("mode", ["timeout", "slow", "phantom_success"])
def test_faults_that_must_come_before_the_call_do_not_act_on_results(mode):
    context = FakeContext([Injection("tool", "search", mode)])
    assert settle(context, asked(result())) == [{}]
    assert context.ledger == []


def test_results_of_tools_on_other_planes_pass():
    context = FakeContext([Injection("tool", "search", "empty")])
    assert settle(context, asked(result()), elsewhere=lambda: {"search"}) == [{}]
    assert (context.ledger, context.trace) == ([], [])


def test_results_of_wrapped_tools_are_only_recorded():
    context = FakeContext([Injection("tool", "search", "empty")])
    assert settle(context, asked(result()), faulty=False) == [{}]
    assert [(e.event_type, e.tool, e.n) for e in context.trace] == [("tool_call", "search", 1)]


def test_a_requested_call_without_a_result_is_declared():
    context = FakeContext()
    results = ToolResults(context, frozenset, faulty=True)
    results.record_calls((ToolCall("call_9", "refund", '{"id": 7}'),), ModelRequest("gpt"))
    results.close()
    assert [(e.tool, e.phase, e.input) for e in context.trace] == [("refund", "declared", '{"id": 7}')]


def test_match_reads_the_arguments_of_the_call():
    context = FakeContext([Injection("tool", "search", "empty", schedule=Schedule(match={"q": "OTHER"}))])
    assert settle(context, asked(result())) == [{}]


def test_a_result_without_a_name_has_the_name_of_its_call():
    context = FakeContext([Injection("tool", "search", "empty")])
    results = ToolResults(context, frozenset, faulty=True)
    results.record_calls((ToolCall("call_1", "search", '{"q": "ACME"}'),), ModelRequest("gpt"))
    changed = asyncio.run(results.settle(asked(result(name=""))))
    assert changed["call_1"].text != ROWS
    assert context.ledger[0].target == "search"


# Which tool results are the same call, whatever ids a server gives and whatever an agent does to old messages.


@pytest.mark.parametrize("ids", ["c1", ""])
@pytest.mark.parametrize("prompts", [("a", "a"), ("a", "b")])
def test_two_conversations_with_the_same_ids_and_results_are_two_calls(ids: str, prompts: tuple[str, str]) -> None:
    trial = Trial(FIRST)
    for prompt in prompts:
        talk = Talk(OPENAI_CHAT)
        talk.user(prompt)
        trial.asks(talk, ids)
        talk.round(ids)
        trial.reads(talk)
    assert trial.calls == [(1, "error"), (2, "")]


def test_a_result_that_the_agent_shortens_later_is_the_same_call() -> None:
    trial, talk = Trial(FIRST), Talk(OPENAI_CHAT)
    talk.user()
    trial.asks(talk, "call_1")
    talk.round("call_1", text="a long result " * 20)
    assert trial.reads(talk) == [FAULT]
    talk.sent[-1]["content"] = "[shortened]"
    trial.asks(talk, "call_2", "pot")
    talk.round("call_2", "pot")
    assert trial.reads(talk) == [FAULT, "-"]
    assert len(trial.calls) == 2


def test_rounds_that_the_agent_leaves_out_later_are_no_new_calls() -> None:
    trial, talk = Trial(Injection("tool", "search", "error", schedule=Schedule(on_call=2))), Talk(OPENAI_CHAT)
    talk.user()
    for at, q in enumerate(("kettle", "pot", "pan")):
        trial.asks(talk, "call_0", q)
        talk.round("call_0", q, f"{at}")
        before = trial.reads(talk)
    talk.sent[0:3] = [{"role": "user", "content": "(a summary)"}]
    talk.model("done")
    assert trial.reads(talk) == before[1:] == [FAULT, "-"]
    assert len(trial.calls) == 3


_ID = {"own": "call_{0}_{1}", "by_round": "call_{1}", "one": "call_0", "none": ""}
_STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["call", "call", "again", "shorten", "leave_out"])), max_size=14
)


@given(_STEPS, st.sampled_from(sorted(_ID)), st.booleans(), st.booleans())
def test_every_requested_call_is_met_once_and_stays_as_it_was(
    steps: list[tuple[int, str]], ids: str, same_prompt: bool, example: bool
) -> None:
    trial = Trial(Injection("tool", "search", "error", schedule=Schedule(every=2)))
    talks = [Talk(OPENAI_CHAT) for _ in range(3)]
    rounds, read = [0, 0, 0], [["-"] * example for _ in talks]
    for at, talk in enumerate(talks):
        if example:
            talk.user("For example")
            talk.round(_ID[ids].format("x", 0), "same" if ids == "own" else "0")
        talk.user("" if same_prompt else str(at))
    twins = same_prompt and ids != "own"  # only the texts of their results distinguish these
    for at, step in steps:
        talk, n = talks[at], rounds[at]
        if step == "call":
            rounds[at] += 1
            id, q = _ID[ids].format(at, n), "same" if ids == "own" else f"{n}"
            trial.asks(talk, id, q)
            talk.round(id, q, f"result {at} {n}")
            shown = trial.reads(talk)
            assert shown[:-1] == read[at]
            read[at] = shown
        elif step == "shorten" and read[at] and not twins:
            next(m for m in talk.sent if m["role"] == "tool")["content"] = "[gone]"
        elif step == "leave_out" and len(read[at]) > 1 and ids == "own":
            oldest = next(n for n, m in enumerate(talk.sent) if m["role"] == "tool")
            del talk.sent[oldest - 1 : oldest + 1], read[at][0]
        assert trial.reads(talk, again=True) == read[at]
    assert len(trial.calls) == sum(step == "call" for _, step in steps)
