"""The faults that model functions meet, on replies as they are on the wire."""

import pytest
from llm_replies import ASKED, BILL, BOTH, CALLED, CHUNKS, SAID
from msgspec.structs import replace

from holdfast.faults.llm.garbage import Garbage
from holdfast.faults.llm.response_drift import ResponseDrift
from holdfast.faults.llm.truncated_response import TruncatedResponse
from holdfast.model.completion import Completion, Finish, Text, Usage


def test_truncated_response_keeps_the_chunks_before_the_cut_and_bills_what_came(meet):
    received = meet(TruncatedResponse(max_tokens=3), SAID)
    assert received.deltas == (CHUNKS[0], Text(" is"), Finish("length"), Usage(30, 3))


def test_a_silent_truncation_on_the_wire_claims_a_normal_stop(meet):
    assert meet(TruncatedResponse(max_tokens=3, silent=True), SAID).finish == "stop"


@pytest.mark.parametrize(
    ("text", "cut"), [("It costs $24.90. Bye", "It costs $24"), ("1,219 people", "1"), ("Ask room 118 now", "Ask room")]
)
def test_a_cut_in_a_number_leaves_another_number(meet, text, cut):
    assert meet(TruncatedResponse(max_tokens=2, in_number=True), replace(SAID, deltas=(Text(text),))).text == cut


def test_tool_calls_after_the_cut_never_come(meet):
    received = meet(TruncatedResponse(max_tokens=3), BOTH)
    assert (received.tool_calls, received.finish, received.text) == ((), "length", "The total is")


@pytest.mark.parametrize("value", [ASKED, SAID], ids=["a call", "a short text"])
def test_truncated_response_has_no_effect_on_what_is_short(meet, value):
    assert meet(TruncatedResponse(max_tokens=50), value) is value


@pytest.mark.parametrize("value", [SAID, ASKED])
def test_garbage_takes_the_place_of_text_and_calls(meet, value):
    received = meet(Garbage(), value)
    assert received.deltas == (Text(received.text), Finish("stop"), BILL)
    assert len(received.text) == 40
    assert received.model == value.model


def test_response_drift_changes_the_text_of_a_reply_on_the_wire(meet):
    received = meet(ResponseDrift(drift_type="format_change"), SAID)
    assert received.text == f"```\n{SAID.text}\n```"
    assert (received.finish, received.usage) == ("stop", BILL)


def test_model_fallback_names_a_smaller_model_and_shortens_the_text(meet):
    received = meet(ResponseDrift(drift_type="model_fallback", severity="significant"), SAID)
    assert received.model == "gpt-4o-mini"
    assert SAID.text.startswith(received.text)
    assert 0 < len(received.text) < len(SAID.text)


def test_model_fallback_changes_only_the_name_of_json_replies(meet):
    reply = Completion((Text('{"a": 1}'), CALLED, Finish("stop")), model="gemini-2.5-pro")
    received = meet(ResponseDrift(drift_type="model_fallback"), reply)
    assert received == replace(reply, model="gemini-2.5-flash")


@pytest.mark.parametrize(
    ("value", "fallback"),
    [
        ({"model": "gpt-4o", "content": "One. Two three."}, {"model": "gpt-4o-mini", "content": "One."}),
        ([{"model": "gpt-4o", "content": ""}], [{"model": "gpt-4o-mini", "content": ""}]),
        ("{}", "{}"),
    ],
)
def test_model_fallback_acts_on_what_a_model_function_returned(meet, value, fallback):
    assert meet(ResponseDrift(drift_type="model_fallback", severity="moderate"), value) == fallback


def test_model_fallback_reads_neither_direction_nor_factor():
    bad = ResponseDrift(drift_type="model_fallback", direction="expand", factor=2.0)
    assert [field for field, _ in bad.problems()] == ["direction", "factor"]
