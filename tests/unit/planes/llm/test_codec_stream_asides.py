"""A stream that a fault changes keeps what the neutral form does not support: thoughts, signatures, choices."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codec_kit import ASKED, CODECS, events, sent
from holdfast.model.completion import Completion, Cut, Finish, Text, ToolCall
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.streamed_reply import OriginalStream, list_left_out


def sse(*sent_events: Any, named: bool = False) -> bytes:
    lines = [(f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one)}\n\n" for one in sent_events]
    return "".join(lines).encode()


def block(index: int, start: Any, *deltas: Any) -> list[Any]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": index},
    ]


THOUGHT = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "hm"},
    {"type": "signature_delta", "signature": "EqQB"},
)
CITED = {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "x"}}
ANTHROPIC = sse(
    {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": 3}}},
    *THOUGHT,
    *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "It is "}),
    *block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "sunny."}, CITED),
    *block(3, {"type": "redacted_thinking", "data": "zzz"}),
    *block(
        4,
        {"type": "tool_use", "id": "c1", "name": "w", "input": {}, "caller": {"type": "direct"}},
        {"type": "input_json_delta", "partial_json": "{}"},
    ),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None, "container": {"id": "k"}},
        "usage": {"output_tokens": 9, "server_tool_use": {"web_search_requests": 1}},
    },
    {"type": "message_stop"},
    named=True,
)


def chunk(index: int, delta: Any, logprobs: Any = None, finish: str | None = None) -> Any:
    choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [choice]}


CHAT = sse(
    chunk(0, {"role": "assistant", "content": ""}),
    chunk(1, {"role": "assistant", "content": ""}),
    chunk(0, {"reasoning_content": "hm"}),
    chunk(0, {"content": "It is "}, {"content": [{"token": "It", "logprob": -1}]}),
    chunk(1, {"content": "other"}),
    chunk(0, {"content": "sunny."}),
    chunk(0, {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"},
                              "extra_content": {"google": {"thought_signature": "s"}}}]}),
    chunk(1, {}, finish="stop"),
    chunk(0, {}, finish="tool_calls"),
    {**chunk(0, {}), "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12,
                                               "completion_tokens_details": {"reasoning_tokens": 4}}},
)  # fmt: skip

RESPONSE = {"id": "resp_1", "created_at": 5, "model": "m", "status": "in_progress", "output": []}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "phase": "commentary"}
PART = {"type": "output_text", "text": "", "annotations": []}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "w", "arguments": "", "namespace": "n"}
NOTE = {"type": "url_citation", "url": "https://a.example/"}
USED = {"input_tokens": 3, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 4}}
RESPONSES = sse(
    {"type": "response.created", "response": RESPONSE},
    {"type": "response.output_item.added", "output_index": 0, "item": {**REASONING, "encrypted_content": None}},
    {"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "delta": "hm"},
    {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
    {"type": "response.output_item.added", "output_index": 1, "item": {**MESSAGE, "content": []}},
    {"type": "response.content_part.added", "item_id": "msg_1", "output_index": 1, "content_index": 0, "part": PART},
    {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": "It is ",
     "logprobs": [{"token": "It", "logprob": -1}]},
    {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": "sunny.",
     "logprobs": []},
    {"type": "response.output_text.annotation.added", "item_id": "msg_1", "output_index": 1, "content_index": 0,
     "annotation_index": 0, "annotation": NOTE},
    {"type": "response.output_item.done", "output_index": 1, "item": {**MESSAGE, "content": [PART]}},
    {"type": "response.output_item.added", "output_index": 2, "item": CALL},
    {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": "{}"},
    {"type": "response.output_item.done", "output_index": 2, "item": {**CALL, "arguments": "{}"}},
    {"type": "response.completed", "response": {**RESPONSE, "status": "completed", "service_tier": "flex",
                                                "usage": USED}},
    named=True,
)  # fmt: skip


def parts(*found: Any, **more: Any) -> Any:
    candidate = {"content": {"parts": list(found), "role": "model"}, "index": 0, **more}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r1"}


USAGE = {"promptTokenCount": 3, "candidatesTokenCount": 5, "thoughtsTokenCount": 4}
GEMINI = sse(
    parts({"text": "hm", "thought": True}),
    parts({"text": "It is "}),
    parts({"text": "sunny.", "thoughtSignature": "s0"}, citationMetadata={"citations": []}),
    parts({"functionCall": {"name": "w", "args": {}}, "thoughtSignature": "s1"}),
    {"candidates": [{"index": 1, "content": {"parts": [{"text": "other"}]}}], "modelVersion": "m"},
    {**parts({"text": ""}, finishReason="STOP"), "usageMetadata": USAGE},
)
OLLAMA = b"".join(
    json.dumps({"model": "m", "created_at": "now", **line}).encode() + b"\n"
    for line in (
        {"message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
        {"message": {"role": "assistant", "content": "It is "}, "done": False},
        {"message": {"role": "assistant", "content": "sunny."}, "done": False},
        {"message": {"content": "", "tool_calls": [{"function": {"name": "w", "arguments": {}}}]}, "done": False},
        {"message": {"content": ""}, "done": True, "done_reason": "stop", "eval_count": 9, "prompt_eval_count": 3,
         "total_duration": 7},
    )
)  # fmt: skip
STREAMS = {
    "anthropic": ANTHROPIC,
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "gemini": GEMINI,
    "ollama_chat": OLLAMA,
}
every_format = pytest.mark.parametrize("name", STREAMS)


def came(name: str) -> tuple[Codec, Completion, OriginalStream]:
    codec = CODECS[name]
    reply = codec.read_stream(STREAMS[name])
    return codec, reply.build_completion(), reply.build_original()


def again(name: str, completion: Completion) -> tuple[str, Completion, OriginalStream]:
    """The changed stream as text, and as it reads once more."""
    codec, _, like = came(name)
    data = sent(codec.write_frames(completion, ASKED, like))
    reply = codec.read_stream(data)
    return data.decode(), reply.build_completion(), reply.build_original()


def shown(like: OriginalStream) -> list[tuple[str, int, int]]:
    return [(extra.kind, extra.text, extra.calls) for extra in like.extras]


@every_format
def test_an_unchanged_stream_keeps_all_its_parts(name: str) -> None:
    _, was, like = came(name)
    _, completion, kept = again(name, was)
    assert (completion.text, completion.tool_calls, completion.finish, completion.usage) == (
        "It is sunny.",
        was.tool_calls,
        was.finish,
        was.usage,
    )
    assert shown(kept) == shown(like)
    assert kept.calls == like.calls


KEPT = {
    "anthropic": ("EqQB", '"redacted_thinking","data":"zzz"', '"caller":{"type":"direct"}', '"container":{"id":"k"}',
                  "web_search_requests"),
    "openai_chat": ('"index":1,"delta":{"content":"other"}', '"reasoning_content":"hm"', "thought_signature",
                    '"reasoning_tokens":4'),
    "openai_responses": ('"encrypted_content":"gAAA"', '"delta":"hm"', '"id":"msg_1"', '"phase":"commentary"',
                         '"id":"fc_1"', '"namespace":"n"', '"service_tier":"flex"', '"reasoning_tokens":4'),
    "gemini": ('{"text":"hm","thought":true}', '"thoughtSignature":"s0"', '"thoughtSignature":"s1"',
               '"parts":[{"text":"other"}]', '"thoughtsTokenCount":4', "citationMetadata"),
    "ollama_chat": ('"thinking":"hm"', '"total_duration":7'),
}  # fmt: skip


@every_format
@pytest.mark.parametrize("text", ["new and longer than before", ""])
def test_a_new_text_keeps_thoughts_signatures_and_further_choices(name: str, text: str) -> None:
    _, was, _ = came(name)
    data, completion, _ = again(name, was.with_text(text))
    assert [
        part
        for part in KEPT[name]
        if part not in data and (text or part not in ('"id":"msg_1"', '"phase":"commentary"'))
    ] == []
    assert (completion.text, completion.tool_calls) == (text, was.tool_calls)


@every_format
def test_kept_parts_stay_at_their_position(name: str) -> None:
    _, was, _ = came(name)
    data, _, _ = again(name, was.with_text("new"))
    order = [data.index(mark) for mark in ("hm", "new") if mark in data]
    assert order == sorted(order)
    if name == "anthropic":
        assert data.index("new") < data.index("redacted_thinking") < data.index('"tool_use"')


@every_format
def test_a_reply_with_other_calls_keeps_the_thoughts(name: str) -> None:
    _, was, _ = came(name)
    calls = (ToolCall("c7", "x", "{}"), ToolCall("c8", "y", "{}"))
    data, completion, _ = again(name, Completion((*calls, Finish("tool_calls")), was.model))
    assert "hm" in data
    assert [call.name for call in completion.tool_calls] == ["x", "y"]


def test_parts_about_a_replaced_text_are_left_out_and_reported() -> None:
    for name, kind in (("openai_chat", "logprobs"), ("openai_responses", "logprobs"), ("anthropic", "citations_delta")):
        _, was, like = came(name)
        assert list_left_out(like, was) == ()
        assert kind in list_left_out(like, was.with_text("new"))
        data, _, _ = again(name, was.with_text("new"))
        assert '"token":"It"' not in data
        assert '"cited_text"' not in data


def test_parts_about_the_kept_beginning_of_a_text_stay() -> None:
    _, _, like = came("openai_chat")
    cut = Completion((Text("It is "), Text("su"), Finish("length")), "m")
    assert list_left_out(like, cut) == ()
    assert '"token":"It"' in again("openai_chat", cut)[0]


@every_format
def test_nothing_follows_a_lost_connection(name: str) -> None:
    _, was, _ = came(name)
    data, _, _ = again(name, Completion((Text("It "), Cut()), was.model))
    assert "redacted_thinking" not in data
    assert '"other"' not in data


@every_format
def test_a_reply_without_a_message_has_no_thoughts(name: str) -> None:
    _, was, _ = came(name)
    data, _, _ = again(name, Completion((Finish("stop"),), was.model, lacks="message"))
    assert "EqQB" not in data
    assert "gAAA" not in data
    assert '"hm"' not in data


def test_anthropic_blocks_are_numbered_in_order() -> None:
    _, was, _ = came("anthropic")
    data, _, _ = again("anthropic", was.with_text("new"))
    starts = [e["index"] for e in events(data.encode()) if e["type"] == "content_block_start"]
    stops = [e["index"] for e in events(data.encode()) if e["type"] == "content_block_stop"]
    assert starts == stops == list(range(len(starts)))


def test_the_reply_at_the_end_of_a_responses_stream_has_all_items() -> None:
    _, was, _ = came("openai_responses")
    sent_events = events(again("openai_responses", was.with_text("new"))[0].encode())
    assert [item["type"] for item in sent_events[-1]["response"]["output"]] == ["reasoning", "message", "function_call"]
    assert [e["sequence_number"] for e in sent_events] == list(range(len(sent_events)))
    done = [e["output_index"] for e in sent_events if e["type"] == "response.output_item.done"]
    assert done == [0, 1, 2]


def test_a_refusal_in_a_responses_stream_is_kept() -> None:
    part = {"type": "refusal", "refusal": ""}
    sent_events = sse(
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.output_item.added", "output_index": 0, "item": {**MESSAGE, "content": []}},
        {
            "type": "response.content_part.added",
            "item_id": "msg_1",
            "output_index": 0,
            "content_index": 0,
            "part": part,
        },
        {"type": "response.refusal.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "No."},
        {"type": "response.output_item.done", "output_index": 0, "item": {**MESSAGE, "content": [part]}},
        {"type": "response.completed", "response": {**RESPONSE, "status": "completed"}},
        named=True,
    )
    codec = CODECS["openai_responses"]
    reply = codec.read_stream(sent_events)
    data = sent(codec.write_frames(reply.build_completion(), ASKED, reply.build_original())).decode()
    assert '"delta":"No."' in data
    assert data.count('"type":"response.output_item.added"') == 1
