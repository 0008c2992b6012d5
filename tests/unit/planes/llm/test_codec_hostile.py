"""Odd JSON, odd bytes and floods: nothing raises, and memory stays bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codec_kit import ASKED, CALLING, CODECS, completions, read, streamed
from example_counts import examples
from holdfast.model.completion import Completion, Text
from holdfast.planes.llm.codecs.streamed_reply import OriginalStream

KEYS = [
    *("messages", "content", "choices", "message", "delta", "tool_calls", "function", "name", "arguments", "role"),
    *("input", "output", "type", "text", "usage", "error", "parts", "candidates", "contents", "functionCall", "tools"),
    *("functionResponse", "response", "index", "finish_reason", "stop_reason", "generationConfig", "tool_choice"),
    *("content_block", "usageMetadata", "options", "stream_options", "system", "done", "eval_count", "status"),
]
WORDS = ["tool", "assistant", "function_call", "function_call_output", "tool_result", "tool_use", "message", "text"]
WORDS += ["response.completed", "content_block_start", "content_block_delta", "error", "user", "model"]
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=3)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=20,
)
every_codec = pytest.mark.parametrize("name", CODECS)


@every_codec
@settings(max_examples=examples(60), deadline=None)
@given(value=anything)
def test_odd_json_never_raises(name: str, value: Any) -> None:
    codec = CODECS[name]
    body = value if isinstance(value, dict) else {"messages": value, "contents": value, "input": value, "tools": value}
    asked = codec.read_request("/x", body)
    codec.replace_results(body, {result.key: "t" for result in asked.results}, frozenset())
    codec.read_reply(value)
    line = json.dumps(value).encode()
    read(codec, (b"[" if name == "gemini_array" else b"") + line + b"\ndata: " + line + b"\n\n")


@pytest.mark.slow
@every_codec
@settings(max_examples=examples(40), deadline=None)
@given(like=anything, completion=completions())
def test_any_reply_can_replace_any_original(name: str, like: Any, completion: Completion) -> None:
    codec = CODECS[name]
    json.loads(codec.write_body(completion, ASKED, like))
    fields = (like,) if isinstance(like, dict) else ()
    list(codec.write_frames(completion, ASKED, OriginalStream(completion, like, like, calls=fields)))


_TYPES = (
    "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "thinking", "text", "tool_use",
    "response.output_item.added", "response.output_item.done", "response.content_part.added", "message", "reasoning",
    "response.output_text.delta", "response.output_text.annotation.added", "response.refusal.delta", "function_call",
)  # fmt: skip
_odd = st.sampled_from([None, 0, "", "x", [], ["x"], [{}], {}, {"x": 1}, {"parts": [{"text": "a", "x": 1}, {"y": 2}]}])
_inner = st.fixed_dictionaries({}, optional={"type": st.sampled_from(_TYPES), "name": _odd, "self": _odd})
_one = st.fixed_dictionaries({"index": st.integers(0, 1), "delta": _odd, "content": _odd}) | _odd
_events = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(_TYPES),
        "index": st.integers(0, 2),
        "output_index": st.integers(0, 2),
        **dict.fromkeys(("content_block", "item", "part", "delta"), _inner | _odd),
        **dict.fromkeys(("choices", "candidates"), st.lists(_one, max_size=2)),
        **dict.fromkeys(("annotation", "logprobs", "thinking", "text", "name", "self"), _odd),
        "done": st.booleans(),
    },
)


@pytest.mark.slow
@every_codec
@settings(max_examples=examples(40), deadline=None)
@given(sent_events=st.lists(_events, max_size=6), completion=completions())
@example(sent_events=[{"type": "response.output_item.added"}, {"output_index": 0}], completion=Completion())
def test_kept_parts_of_any_stream_can_be_written_again(
    name: str, sent_events: list[Any], completion: Completion
) -> None:
    codec = CODECS[name]
    start, end = (b"data: ", b"\n\n") if codec.stream_type == "text/event-stream" else (b"", b"\n")
    data = b"".join([start + json.dumps(event).encode() + end for event in sent_events])
    list(codec.write_frames(completion, ASKED, codec.read_stream(data).build_original()))


@every_codec
@settings(max_examples=examples(60), deadline=None)
@given(data=st.lists(st.binary(max_size=40) | st.sampled_from([b"data: ", b"\n\n", b"\r", b"{", b'"', b"\\", b"}"])))
def test_odd_bytes_never_raise(name: str, data: list[bytes]) -> None:
    read(CODECS[name], b"".join(data))


@every_codec
def test_deep_nesting_and_long_texts(name: str) -> None:
    codec = CODECS[name]
    deep: Any = "x"
    for _ in range(400):
        deep = {"content": [deep], "parts": [deep]}
    codec.read_request("/x", {"messages": [deep], "contents": [deep], "input": [deep]})
    codec.read_reply({"choices": [deep], "content": [deep], "output": [deep], "candidates": [deep], "message": deep})
    read(codec, b"data: " + b"[" * 100_000 + b"\n\n")
    read(codec, b'{"a":' * 100_000)
    long = Completion((Text("ä" * 1_000_000),))
    assert codec.read_reply(json.loads(codec.write_body(long, ASKED))).text == long.text


@pytest.mark.parametrize("name", ["openai_chat", "anthropic"])
def test_half_a_stream_is_half_a_reply(name: str) -> None:
    data = streamed(CODECS[name], CALLING)
    half = read(CODECS[name], data[: data.index(b"clock")])
    assert half.text == "Let me look."
    assert [call.name for call in half.tool_calls] == ["weather"]
    assert half.finish is None
