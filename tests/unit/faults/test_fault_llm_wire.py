from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import HarnessError
from holdfast.faults.llm_text import create_call_id, replace_calls, request_calls, require_completion, take_first_tokens
from holdfast.model.completion import Completion, EmptyChunk, Finish, Text, ToolCall, Usage
from holdfast.model.shorten import take_tokens

CALL = ToolCall("call_1", "f", "{}")


@given(st.lists(st.text("ab .,\u4e2d\n", max_size=6).filter(bool), max_size=6), st.integers(0, 12))
def test_the_beginning_is_the_first_tokens_in_the_chunks_they_came_in(chunks, tokens):
    whole = [Text(chunk) for chunk in chunks]
    kept = take_first_tokens(Completion((*whole, CALL, Finish("stop"))), tokens)
    assert "".join(delta.text for delta in kept) == take_tokens("".join(chunks), tokens)
    assert list(kept[:-1]) == whole[: len(kept[:-1])]


def test_the_beginning_holds_no_tool_call_and_no_end():
    assert take_first_tokens(Completion((EmptyChunk(), Text("a b"), CALL, Finish("stop"))), 9) == (
        EmptyChunk(),
        Text("a b"),
    )
    assert take_first_tokens(Completion((CALL, Text("a b"))), 9) == ()


def test_a_reply_that_asks_for_a_call_keeps_its_bill_and_nothing_else():
    reply = Completion((Text("a"), Finish("stop"), Usage(1, 2)), model="m")
    assert request_calls(reply, [CALL]) == Completion((CALL, Finish("tool_calls"), Usage(1, 2)), model="m")


def test_calls_are_exchanged_in_their_places():
    other = ToolCall("call_1", "g", "{}")
    assert replace_calls(Completion((Text("a"), CALL, Text("b"))), [other]).deltas == (Text("a"), other, Text("b"))


def test_new_ids_look_like_the_old_ones_and_differ():
    rng = Random(1)
    ids = [create_call_id(rng, "toolu_01A"), create_call_id(rng, "toolu_01A"), create_call_id(rng)]
    assert [id.partition("_")[0] for id in ids] == ["toolu", "toolu", "call"]
    assert len(set(ids)) == 3


def test_what_a_model_function_returned_is_not_on_the_wire():
    with pytest.raises(HarnessError) as raised:
        require_completion("hi", "stream_cut")
    assert raised.value.code == "fault-impossible"
