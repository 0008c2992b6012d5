"""OpenAI's own library reads what the Chat Completions codec writes."""

from __future__ import annotations

import openai
import pytest
from codec_clients import Wire, openai_client, plain, refused, stream

from codec_kit import CALLING, SUNNY
from holdfast.model.completion import Completion, Finish, Hollow, Text, ToolCall, Trouble
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.protocols.fault import Failed

ASK = {"model": "model-1", "messages": [{"role": "user", "content": "Hello"}]}


def test_plain_text_finish_and_usage() -> None:
    reply = openai_client(plain(OPENAI_CHAT, SUNNY)).chat.completions.create(**ASK)
    assert reply.choices[0].message.content == SUNNY.text
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (12, 7, 19)


def test_plain_tool_calls() -> None:
    reply = openai_client(plain(OPENAI_CHAT, CALLING)).chat.completions.create(**ASK)
    calls = reply.choices[0].message.tool_calls or []
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
        (call.id, call.name, call.arguments) for call in CALLING.tool_calls
    ]
    assert reply.choices[0].finish_reason == "tool_calls"


def test_streamed_text_comes_chunk_by_chunk() -> None:
    chunks = list(openai_client(stream(OPENAI_CHAT, SUNNY)).chat.completions.create(**ASK, stream=True))
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert texts == ["It is ", "sunny — 21 °C."]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert len({chunk.id for chunk in chunks}) == 1


def test_streamed_tool_calls_are_put_together_by_the_library() -> None:
    with openai_client(stream(OPENAI_CHAT, CALLING)).chat.completions.stream(**ASK) as events:
        final = events.get_final_completion()
    calls = final.choices[0].message.tool_calls or []
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
        (call.id, call.name, call.arguments) for call in CALLING.tool_calls
    ]
    assert final.choices[0].message.content == "Let me look."


def test_a_hollow_chunk_has_no_choices() -> None:
    wire = stream(OPENAI_CHAT, Completion((Text("a"), Hollow(), Text("b"))))
    chunks = list(openai_client(wire).chat.completions.create(**ASK, stream=True))
    assert [len(chunk.choices) for chunk in chunks] == [1, 1, 0, 1]


def test_trouble_inside_a_stream_is_an_api_error_there() -> None:
    wire = stream(OPENAI_CHAT, Completion((Text("half"), Trouble("overloaded", "busy"))))
    chunks = iter(openai_client(wire).chat.completions.create(**ASK, stream=True))
    assert [next(chunks).choices[0].delta.content, next(chunks).choices[0].delta.content] == ["", "half"]
    with pytest.raises(openai.APIError, match="overloaded"):
        next(chunks)


def test_usage_is_streamed_only_if_it_was_asked_for() -> None:
    asked = OPENAI_CHAT.read_request("/chat/completions", {**ASK, "stream": True})
    frames = [frame for frame in OPENAI_CHAT.frames(SUNNY, asked) if isinstance(frame, bytes)]
    assert not any(b"prompt_tokens" in frame for frame in frames)
    assert frames[-1] == b"data: [DONE]\n\n"


@pytest.mark.parametrize("lacks", ["choices", "message"])
def test_a_reply_that_lacks_its_choices_or_its_message(lacks: str) -> None:
    completion = Completion((Text("x"), Finish("stop")), "m", lacks)  # type: ignore[arg-type]
    reply = openai_client(plain(OPENAI_CHAT, completion)).chat.completions.create(**ASK)
    assert reply.choices == [] if lacks == "choices" else reply.choices[0].message is None
    chunks = list(openai_client(stream(OPENAI_CHAT, completion)).chat.completions.create(**ASK, stream=True))
    if lacks == "choices":
        assert [chunk.choices for chunk in chunks] == [[]]
    else:
        assert {chunk.choices[0].delta for chunk in chunks} == {None}


def test_filtered_content_is_empty_and_says_so() -> None:
    reply = openai_client(plain(OPENAI_CHAT, Completion((Finish("content_filter"),)))).chat.completions.create(**ASK)
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("", "content_filter")


def test_arguments_that_are_no_json_arrive_as_the_model_wrote_them() -> None:
    broken = Completion((ToolCall("c", "weather", '{"city": "Zür'), Finish("tool_calls")))
    reply = openai_client(plain(OPENAI_CHAT, broken)).chat.completions.create(**ASK)
    assert (reply.choices[0].message.tool_calls or [])[0].function.arguments == '{"city": "Zür'


@pytest.mark.parametrize(
    ("failed", "expected", "code"),
    [
        (Failed("slow down", status=429, retry_after_s=2), openai.RateLimitError, "rate_limit_exceeded"),
        (Failed("none left", status=429, kind="quota"), openai.RateLimitError, "insufficient_quota"),
        (Failed("busy", kind="overloaded"), openai.InternalServerError, "server_overloaded"),
        (Failed("broken", status=500), openai.InternalServerError, "server_error"),
        (Failed("long", kind="context_length"), openai.BadRequestError, "context_length_exceeded"),
        (Failed("who", kind="auth"), openai.AuthenticationError, "invalid_api_key"),
        (Failed("no such model", status=404), openai.NotFoundError, "model_not_found"),
        (Failed("bad gateway", status=502, kind="html"), openai.InternalServerError, None),
    ],
)
def test_errors_raise_as_in_production(failed: Failed, expected: type[openai.APIStatusError], code: str | None) -> None:
    wire: Wire = refused(OPENAI_CHAT.refusal(failed))
    with pytest.raises(expected) as raised:
        openai_client(wire).chat.completions.create(**ASK)
    assert raised.value.code == code
    assert raised.value.response.headers.get("retry-after") == ("2" if failed.retry_after_s else None)
