"""Faults of the calls a model asks for: malformed_tool_call, unknown_tool, wrong_args, repeat_tool_call."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_replies import ASKED, BILL, BOTH, CALLED, SAID
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.faults.llm.malformed_tool_call import MalformedToolCall
from holdfast.faults.llm.repeat_tool_call import RepeatToolCall
from holdfast.faults.llm.unknown_tool import UnknownTool
from holdfast.faults.llm.wrong_args import WrongArgs
from holdfast.model.completion import Completion, Finish, ToolCall
from holdfast.protocols.fault import Call, Reply

OTHER = ToolCall("call_2", "buy", "{}")
ALL = [MalformedToolCall(), UnknownTool(), WrongArgs(), RepeatToolCall()]


@pytest.mark.parametrize("fault", ALL, ids=lambda fault: type(fault).__name__)
def test_a_fault_of_calls_is_refused_by_a_model_function(meet, fault):
    assert fault.traits.wire_only
    with pytest.raises(HarnessError) as raised:
        meet(fault, "hi")
    assert raised.value.code == "fault-impossible"


@pytest.mark.parametrize("fault", [MalformedToolCall(), WrongArgs(), RepeatToolCall()])
def test_faults_on_calls_have_no_effect_on_a_reply_without_calls(meet, fault):
    assert meet(fault, SAID) == SAID


# -- malformed_tool_call ------------------------------------------------------------------------
def parses(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("arguments", ["", "{}", "3", "33", '""', '{"a": 1}', CALLED.arguments])
def test_malformed_arguments_are_not_json(meet, arguments):
    reply = Completion((replace(CALLED, arguments=arguments), Finish("tool_calls")))
    (call,) = meet(MalformedToolCall(), reply).tool_calls
    assert call.name == CALLED.name
    assert call.arguments != arguments
    assert not parses(call.arguments)


def test_malformed_arguments_break_off(meet):
    (call,) = meet(MalformedToolCall(), BOTH).tool_calls
    assert CALLED.arguments.startswith(call.arguments)
    assert '"kettle"' in call.arguments


def test_malformed_arguments_may_be_no_object(meet):
    (call,) = meet(MalformedToolCall(shape="not_object"), ASKED).tool_calls
    assert json.loads(call.arguments) == CALLED.arguments


# -- unknown_tool -------------------------------------------------------------------------------
def test_unknown_tool_replaces_the_call_that_the_model_wanted(meet):
    received = meet(UnknownTool(), BOTH)
    assert received.deltas == (replace(CALLED, name="find_item_v2"), Finish("tool_calls"), BILL)


def test_unknown_tool_takes_the_place_of_an_answer(meet):
    received = meet(UnknownTool(), SAID)
    (call,) = received.tool_calls
    assert (call.name, call.arguments, received.text, received.finish) == ("lookup_records", "{}", "", "tool_calls")
    assert call.id


@pytest.mark.parametrize(
    ("value", "name"), [(SAID, "lookup_records_v2_v2"), (ASKED, "find_item_v2"), (BOTH, "find_item_v2")]
)
def test_unknown_tool_is_none_that_the_request_declares(meet, value, name):
    declared = {"tools": ["find_item", "lookup_records", "lookup_records_v2"]}
    assert meet(UnknownTool(), value, arguments=declared).tool_calls[0].name == name


@pytest.mark.parametrize("value", [SAID, ASKED])
def test_unknown_tool_can_be_named(meet, value):
    assert meet(UnknownTool(tool="teleport"), value).tool_calls[0].name == "teleport"


# -- wrong_args ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("missing", [{"limit": 3}, {"name": "kettle"}]),
        ("renamed", [{"name_value": "kettle", "limit": 3}, {"name": "kettle", "limit_value": 3}]),
        ("retyped", [{"name": {"value": "kettle"}, "limit": 3}, {"name": "kettle", "limit": {"value": 3}}]),
    ],
)
def test_wrong_args_are_missing_renamed_or_of_another_type(meet, kind, seen):
    received = [meet(WrongArgs(kinds=(kind,)), ASKED, seed=seed).tool_calls[0] for seed in range(12)]
    assert {call.name for call in received} == {"find_item"}
    assert all(json.loads(call.arguments) in seen for call in received)
    assert len({call.arguments for call in received}) == 2


def test_wrong_args_add_one_to_a_call_without_any(meet):
    for arguments in ("{}", ""):
        reply = Completion((ToolCall("1", "now", arguments),))
        assert json.loads(meet(WrongArgs(), reply).tool_calls[0].arguments) == {"unexpected": True}


def test_wrong_args_leave_what_cannot_be_read(meet):
    reply = Completion((ToolCall("1", "now", "[1]"), ToolCall("2", "now", "{oops")))
    assert meet(WrongArgs(), reply) == reply


@given(st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5) | st.lists(st.none())))
def test_wrong_args_are_always_an_object_and_never_the_same(arguments):
    from random import Random

    for seed in range(5):
        wrong = json.loads(WrongArgs()._change_arguments(json.dumps(arguments), Random(seed)))
        assert isinstance(wrong, dict)
        assert wrong != arguments


# -- repeat_tool_call ---------------------------------------------------------------------------
def test_repeat_tool_call_asks_again_for_the_first_call_under_another_id(meet):
    fault, memory = RepeatToolCall(), {}
    assert meet(fault, ASKED, memory=memory) is ASKED
    for n, value in enumerate((SAID, Completion((OTHER, Finish("tool_calls"), BILL))), start=2):
        received = meet(fault, value, memory=memory, n=n, seed=n)
        (call,) = received.tool_calls
        assert (call.name, call.arguments) == (CALLED.name, CALLED.arguments)
        assert call.id != CALLED.id
        assert received.deltas == (call, Finish("tool_calls"), BILL)


def test_repeat_tool_call_remembers_calls_it_let_through(meet):
    fault, memory = RepeatToolCall(), {}
    fault.watch(Call("llm", "m", {}, 1), Reply(SAID), memory)
    fault.watch(Call("llm", "m", {}, 2), Reply(ASKED), memory)
    fault.watch(Call("llm", "m", {}, 3), Reply("hi"), memory)
    assert meet(fault, SAID, memory=memory).tool_calls[0].name == "find_item"


def test_repeat_tool_call_has_no_effect_if_the_model_repeats_itself(meet):
    memory = {"calls": (CALLED,)}
    again = Completion((replace(CALLED, id="call_9"), Finish("tool_calls")))
    assert meet(RepeatToolCall(), again, memory=memory) is again
