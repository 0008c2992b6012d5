import copy
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace as Object

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import HarnessError
from holdfast.faults.llm_text import (
    UnsupportedShape,
    create_call_id,
    read_text,
    replace_calls,
    replace_text,
    request_calls,
    require_completion,
    set_early_end,
    take_first_tokens,
)
from holdfast.model.completion import Completion, EmptyChunk, Finish, Text, ToolCall, Usage
from holdfast.model.shorten import take_tokens


@dataclass(frozen=True)
class Message:
    content: str


def chat(content, reason="stop"):
    return {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": reason}]}


SHAPES = {
    "text": ("hi", "ho"),
    "content": ({"content": "hi", "id": 1}, {"content": "ho", "id": 1}),
    "output": ({"output": "hi"}, {"output": "ho"}),
    "answer": ({"answer": "hi"}, {"answer": "ho"}),
    "message": ({"message": {"content": "hi"}}, {"message": {"content": "ho"}}),
    "object": (Object(text="hi", n=1), Object(text="ho", n=1)),
    "dataclass": (Message("hi"), Message("ho")),
    "openai": (chat("hi"), chat("ho")),
    "openai object": (
        Object(choices=[Object(message=Message("hi"), index=0)]),
        Object(choices=[Object(message=Message("ho"), index=0)]),
    ),
    "openai completion": ({"choices": [{"text": "hi"}]}, {"choices": [{"text": "ho"}]}),
    "anthropic": (
        {"content": [{"type": "text", "text": "h"}, {"type": "tool_use", "input": {}}, {"type": "text", "text": "i"}]},
        {"content": [{"type": "text", "text": "ho"}, {"type": "tool_use", "input": {}}, {"type": "text", "text": ""}]},
    ),
    "openai responses": (
        {"output": [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]},
        {"output": [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "ho"}]}]},
    ),
    "stream of text": (["h", "i"], ["ho", ""]),
    "stream of chunks": (
        [{"choices": [{"delta": {"content": "hi"}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}],
        [{"choices": [{"delta": {"content": "ho"}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}],
    ),
}


def test_the_text_is_found_and_replaced_in_every_usual_shape():
    for shape in SHAPES:
        before, after = SHAPES[shape]
        kept = copy.deepcopy(before)
        assert read_text(before) == "hi", shape
        assert replace_text(before, "ho") == after, shape
        assert before == kept, shape


@pytest.mark.parametrize(
    "value",
    [
        None,
        chat(None),
        {"choices": []},
        {"choices": [{"message": None}]},
        {"content": [{"type": "tool_use", "input": {}}]},
        {"content": []},
        [],
    ],
    ids=repr,
)
def test_a_reply_without_text_is_known_and_has_none(value):
    assert read_text(value) is None


def test_text_can_be_added_to_a_reply_without_text():
    assert replace_text(chat(None), "ho") == chat("ho")
    assert replace_text({"choices": []}, "ho") == {"choices": []}


def test_other_choices_are_other_answers():
    two = {"choices": [{"text": "hi"}, {"text": "or this"}]}
    assert read_text(two) == "hi"
    assert replace_text(two, "ho") == {"choices": [{"text": "ho"}, {"text": "or this"}]}


@pytest.mark.parametrize("value", [5, 1.5, object(), {"reply": "hi"}, {"content": 5}, [1, 2], [{"a": "b"}], iter("hi")])
def test_another_shape_is_our_error_that_shows_the_type(value):
    with pytest.raises(UnsupportedShape, match=type(value).__name__) as raised:
        read_text(value)
    assert isinstance(raised.value, HarnessError)
    with pytest.raises(UnsupportedShape):
        replace_text(value, "ho")


@pytest.mark.parametrize(
    ("value", "marked"),
    [
        (chat("hi"), chat("hi", "length")),
        ({"content": [], "stop_reason": "end_turn"}, {"content": [], "stop_reason": "max_tokens"}),
        ({"stop_reason": None}, {"stop_reason": "max_tokens"}),
        (Object(text="", finish_reason="stop"), Object(text="", finish_reason="length")),
        ({"done_reason": "stop"}, {"done_reason": "length"}),
        ("hi", "hi"),
        ([chat("a", None), chat("b")], [chat("a", None), chat("b", "length")]),
    ],
)
def test_a_cut_is_admitted_in_the_providers_own_field(value, marked):
    assert set_early_end(value, "length") == marked


@pytest.mark.parametrize(
    ("value", "marked"),
    [
        (chat("hi"), chat("hi", "content_filter")),
        ({"content": [], "stop_reason": "end_turn"}, {"content": [], "stop_reason": "refusal"}),
        ("hi", "hi"),
    ],
)
def test_a_filter_is_named_in_the_providers_own_field(value, marked):
    assert set_early_end(value, "content_filter") == marked


def test_the_text_of_a_completion_joins_its_chunks():
    reply = Completion((Text("h"), Text("i"), Finish("stop")))
    assert read_text(reply) == "hi"
    assert replace_text(reply, "ho") == Completion((Text("ho"), Finish("stop")))
    assert set_early_end(reply, "length").finish == "length"
    assert read_text(Completion((ToolCall("1", "f", "{}"),))) is None


def test_a_long_stream_is_quick_to_change():
    chunks: list[str] = ["word "] * 3_000
    assert isinstance(iter(chunks), Iterator)
    changed = replace_text(chunks, "ho")
    assert (changed[0], set(changed[1:]), len(changed)) == ("ho", {""}, 3_000)


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


def test_a_reply_with_requested_calls_keeps_only_its_usage():
    reply = Completion((Text("a"), Finish("stop"), Usage(1, 2)), model="m")
    assert request_calls(reply, [CALL]) == Completion((CALL, Finish("tool_calls"), Usage(1, 2)), model="m")


def test_calls_are_exchanged_in_their_places():
    other = ToolCall("call_1", "g", "{}")
    assert replace_calls(Completion((Text("a"), CALL, Text("b"))), [other]).deltas == (Text("a"), other, Text("b"))


def test_new_ids_have_the_prefix_of_the_old_ones():
    rng = Random(1)
    ids = [create_call_id(rng, "toolu_01A"), create_call_id(rng, "toolu_01A"), create_call_id(rng)]
    assert [id.partition("_")[0] for id in ids] == ["toolu", "toolu", "call"]
    assert len(set(ids)) == 3


def test_results_of_model_functions_are_not_completions():
    with pytest.raises(HarnessError) as raised:
        require_completion("hi", "stream_cut")
    assert raised.value.code == "fault-impossible"
