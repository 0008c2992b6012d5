"""Anthropic's own library reads what the Messages codec writes."""

from __future__ import annotations

import json
from random import Random

import anthropic
import pytest
from anthropic._exceptions import OverloadedError
from codec_clients import anthropic_client, plain, refused, stream

from codec_kit import CALLING, SUNNY
from holdfast.model.completion import Completion, Finish, Hollow, Text, ToolCall, Trouble
from holdfast.planes.llm.codecs.anthropic import ANTHROPIC
from holdfast.planes.llm.reply_sender import odd_frames
from holdfast.protocols.fault import Failed

ASK = {"model": "model-1", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}


def test_plain_text_stop_reason_and_usage() -> None:
    reply = anthropic_client(plain(ANTHROPIC, SUNNY)).messages.create(**ASK)
    assert reply.content[0].type == "text"
    assert (reply.content[0].text, reply.stop_reason) == (SUNNY.text, "end_turn")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (12, 7)


def test_plain_tool_calls() -> None:
    reply = anthropic_client(plain(ANTHROPIC, CALLING)).messages.create(**ASK)
    calls = [block for block in reply.content if block.type == "tool_use"]
    assert [(call.id, call.name, call.input) for call in calls] == [
        (call.id, call.name, json.loads(call.arguments)) for call in CALLING.tool_calls
    ]
    assert reply.stop_reason == "tool_use"


@pytest.mark.parametrize("odd", [False, True])
def test_the_library_puts_the_stream_together(odd: bool) -> None:
    completion = Completion((Hollow(), *CALLING.deltas), "model-1")
    wire = stream(ANTHROPIC, completion, (lambda f: odd_frames(f, Random(3))) if odd else (lambda f: f))
    with anthropic_client(wire).messages.stream(**ASK) as events:
        text = list(events.text_stream)
        final = events.get_final_message()
    assert text == ["Let me look."]
    assert [block.input for block in final.content if block.type == "tool_use"] == [{"city": "Zürich", "days": 3}, {}]
    assert (final.stop_reason, final.usage.input_tokens, final.usage.output_tokens) == ("tool_use", 20, 9)


def test_streamed_arguments_come_in_pieces() -> None:
    events = list(anthropic_client(stream(ANTHROPIC, CALLING)).messages.create(**ASK, stream=True))
    pieces = [e for e in events if e.type == "content_block_delta" and e.delta.type == "input_json_delta"]
    assert len(pieces) > 2
    assert [event.type for event in events][-2:] == ["message_delta", "message_stop"]


def test_trouble_inside_a_stream_raises_there() -> None:
    wire = stream(ANTHROPIC, Completion((Text("half"), Trouble("overloaded", "busy"))))
    events = iter(anthropic_client(wire).messages.create(**ASK, stream=True))
    with pytest.raises(anthropic.APIStatusError) as raised:
        list(events)
    assert raised.value.type == "overloaded_error"


def test_trouble_may_come_before_anything_else() -> None:
    wire = stream(ANTHROPIC, Completion((Trouble("overloaded", "busy"),)))
    with pytest.raises(anthropic.APIStatusError):
        list(anthropic_client(wire).messages.create(**ASK, stream=True))


def test_filtered_content_is_a_refusal() -> None:
    reply = anthropic_client(plain(ANTHROPIC, Completion((Finish("content_filter"),)))).messages.create(**ASK)
    assert (reply.content, reply.stop_reason) == ([], "refusal")


def test_arguments_that_are_no_json_reach_the_client() -> None:
    broken = Completion((ToolCall("t", "weather", '{"city": "Zür'), Finish("tool_calls")))
    reply = anthropic_client(plain(ANTHROPIC, broken)).messages.create(**ASK)
    assert reply.content[0].type == "tool_use"
    assert reply.content[0].input == '{"city": "Zür'
    with (
        pytest.raises(ValueError, match="JSON"),
        anthropic_client(
            stream(ANTHROPIC, Completion((ToolCall("t", "weather", "{city: 1}"), Finish("tool_calls"))))
        ).messages.stream(**ASK) as events,
    ):
        events.get_final_message()


@pytest.mark.parametrize("lacks", ["choices", "message"])
def test_a_reply_that_lacks_its_content(lacks: str) -> None:
    completion = Completion((Text("x"), Finish("stop")), "m", lacks)  # type: ignore[arg-type]
    reply = anthropic_client(plain(ANTHROPIC, completion)).messages.create(**ASK)
    assert reply.content == ([] if lacks == "choices" else None)
    with anthropic_client(stream(ANTHROPIC, completion)).messages.stream(**ASK) as events:
        assert events.get_final_message().content == []


@pytest.mark.parametrize(
    ("failed", "expected", "type"),
    [
        (Failed("slow down", status=429, retry_after_s=0.5), anthropic.RateLimitError, "rate_limit_error"),
        (Failed("busy", status=503, kind="overloaded"), OverloadedError, "overloaded_error"),
        (Failed("broken", status=500), anthropic.InternalServerError, "api_error"),
        (Failed("long", kind="context_length"), anthropic.BadRequestError, "invalid_request_error"),
        (Failed("who", kind="auth"), anthropic.AuthenticationError, "authentication_error"),
        (Failed("bad gateway", kind="html"), anthropic.InternalServerError, None),
    ],
)
def test_errors_raise_as_in_production(failed: Failed, expected: type[anthropic.APIStatusError], type: str) -> None:
    with pytest.raises(expected) as raised:
        anthropic_client(refused(ANTHROPIC.refusal(failed))).messages.create(**ASK)
    assert raised.value.type == type
    assert raised.value.response.headers.get("retry-after") == ("0.5" if failed.retry_after_s else None)
    if failed.kind == "context_length":
        assert "prompt is too long" in str(raised.value)
