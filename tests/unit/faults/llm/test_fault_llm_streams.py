"""Faults of a stream: stream_cut, slow_tokens, empty_choices, odd_chunks; and content_filter."""

import pytest
from llm_replies import ASKED, BILL, BOTH, CALLED, CHUNKS, SAID
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.faults.llm.content_filter import ContentFilter
from holdfast.faults.llm.empty_choices import EmptyChoices
from holdfast.faults.llm.odd_chunks import OddChunks
from holdfast.faults.llm.slow_tokens import SlowTokens
from holdfast.faults.llm.stream_cut import StreamCut
from holdfast.model.completion import Completion, Cut, EmptyChunk, Finish, Pause, Text

STREAM = {"stream": True}


@pytest.mark.parametrize("fault", [StreamCut(), EmptyChoices(), OddChunks()], ids=lambda fault: type(fault).__name__)
def test_a_fault_of_the_wire_is_refused_by_a_model_function(meet, fault):
    assert fault.traits.wire_only
    with pytest.raises(HarnessError) as raised:
        meet(fault, "hi")
    assert raised.value.code == "fault-impossible"


# -- stream_cut ---------------------------------------------------------------------------------
def test_stream_cut_ends_after_some_tokens_without_an_end(meet):
    assert meet(StreamCut(after_tokens=2), SAID).deltas == (CHUNKS[0], Cut())


def test_stream_cut_comes_before_calls_and_the_end_however_short_the_text(meet):
    assert meet(StreamCut(after_tokens=99), BOTH).deltas == (*CHUNKS, Cut())
    assert meet(StreamCut(), ASKED).deltas == (Cut(),)


# -- slow_tokens --------------------------------------------------------------------------------
def test_slow_tokens_waits_for_the_first_and_trickles_the_others(meeting):
    m = meeting(SlowTokens(ttft_ms=300, per_token_ms=20), Completion((Text("a b"), Text(" c"), Finish("stop"), BILL)))
    received = m.run()
    assert m.slept_ms == 300
    assert received.deltas == (Text("a"), Pause(20), Text(" b"), Pause(20), Text(" c"), Finish("stop"), BILL)


def test_slow_tokens_takes_as_long_for_a_call_as_its_arguments(meet):
    received = meet(SlowTokens(ttft_ms=0, per_token_ms=10), Completion((Text("a"), CALLED, Finish("tool_calls"))))
    # The arguments are 15 tokens by our count; the name is one more.
    assert received.deltas == (Text("a"), Pause(160), CALLED, Finish("tool_calls"))


def test_slow_tokens_keeps_the_reply(meet):
    received = meet(SlowTokens(), SAID)
    assert (received.text, received.finish, received.usage) == (SAID.text, "stop", BILL)
    assert meet(SlowTokens(per_token_ms=0), SAID).text == SAID.text


def test_slow_tokens_makes_a_model_functions_value_late(meeting):
    m = meeting(SlowTokens(ttft_ms=100, per_token_ms=10), "one two three")
    assert m.run() == "one two three"
    assert m.slept_ms == 120


# -- empty_choices ------------------------------------------------------------------------------
def test_empty_choices_begins_a_stream_with_a_hollow_chunk(meet):
    assert meet(EmptyChoices(), SAID, arguments=STREAM) == replace(SAID, deltas=(EmptyChunk(), *SAID.deltas))


@pytest.mark.parametrize("arguments", [{}, {"stream": False}])
def test_empty_choices_takes_the_choices_of_a_plain_reply(meet, arguments):
    assert meet(EmptyChoices(), SAID, arguments=arguments) == replace(SAID, lacks="choices")


# -- odd_chunks ---------------------------------------------------------------------------------
def test_odd_chunks_changes_only_how_a_stream_is_sent(meet):
    assert meet(OddChunks(), SAID, arguments=STREAM) == replace(SAID, odd=True)


def test_odd_chunks_has_no_effect_on_a_plain_reply(meet):
    assert meet(OddChunks(), SAID) is SAID


# -- content_filter -----------------------------------------------------------------------------
@pytest.mark.parametrize("value", [SAID, ASKED, BOTH])
def test_content_filter_leaves_nothing_but_the_reason_and_the_bill(meet, value):
    assert meet(ContentFilter(), value).deltas == (Finish("content_filter"), BILL)


@pytest.mark.parametrize(
    ("value", "filtered"),
    [
        ("hi", ""),
        (
            {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]},
            {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]},
        ),
        ({"content": None, "stop_reason": "end_turn"}, {"content": None, "stop_reason": "refusal"}),
    ],
)
def test_content_filter_acts_on_what_a_model_function_returned(meet, value, filtered):
    assert meet(ContentFilter(), value) == filtered
