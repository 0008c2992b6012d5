"""Ollama's own library reads what the Ollama codecs write."""

from __future__ import annotations

import json

import ollama
import pytest
from codec_clients import ollama_client, plain, refused, stream

from codec_kit import CALLING, SUNNY
from holdfast.model.completion import Completion, Finish, Hollow, Text, ToolCall, Trouble
from holdfast.planes.llm.codecs.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from holdfast.protocols.fault import Failed

ASK = {"model": "model-1", "messages": [{"role": "user", "content": "Hello"}]}


def test_plain_chat() -> None:
    reply = ollama_client(plain(OLLAMA_CHAT, SUNNY)).chat(**ASK)
    assert (reply.message.content, reply.done_reason) == (SUNNY.text, "stop")
    assert (reply.prompt_eval_count, reply.eval_count) == (12, 7)


def test_plain_tool_calls() -> None:
    reply = ollama_client(plain(OLLAMA_CHAT, CALLING)).chat(**ASK)
    assert [(call.function.name, call.function.arguments) for call in reply.message.tool_calls or []] == [
        (call.name, json.loads(call.arguments)) for call in CALLING.tool_calls
    ]


def test_streamed_chat() -> None:
    completion = Completion((*SUNNY.deltas[:2], Hollow(), *CALLING.deltas[1:]), "model-1")
    parts = list(ollama_client(stream(OLLAMA_CHAT, completion)).chat(**ASK, stream=True))
    assert [part.message.content for part in parts] == ["It is ", "sunny — 21 °C.", "", "", "", ""]
    assert [call.function.name for part in parts for call in part.message.tool_calls or []] == ["weather", "clock"]
    assert [part.done for part in parts] == [False] * 5 + [True]


def test_plain_and_streamed_generate() -> None:
    reply = ollama_client(plain(OLLAMA_GENERATE, SUNNY)).generate("model-1", "Hello")
    assert (reply.response, reply.done_reason) == (SUNNY.text, "stop")
    parts = list(ollama_client(stream(OLLAMA_GENERATE, SUNNY)).generate("model-1", "Hello", stream=True))
    assert "".join(part.response or "" for part in parts) == SUNNY.text
    assert parts[-1].eval_count == 7


def test_filtered_content_is_an_empty_stop() -> None:
    reply = ollama_client(plain(OLLAMA_CHAT, Completion((Finish("content_filter"),)))).chat(**ASK)
    assert (reply.message.content, reply.done_reason) == ("", "stop")


def test_a_call_that_the_format_cannot_carry_is_shown_as_text() -> None:
    broken = Completion((ToolCall("t", "weather", '{"city": "Zür'), Finish("tool_calls")))
    reply = ollama_client(plain(OLLAMA_CHAT, broken)).chat(**ASK)
    assert (reply.message.content, reply.message.tool_calls) == (
        '{"name": "weather", "arguments": {"city": "Zür}',
        None,
    )
    first, _ = ollama_client(stream(OLLAMA_CHAT, broken)).chat(**ASK, stream=True)
    assert first.message.content == reply.message.content


def test_trouble_inside_a_stream_raises_there() -> None:
    parts = ollama_client(stream(OLLAMA_CHAT, Completion((Text("a"), Trouble("server_error", "broke"))))).chat(
        **ASK, stream=True
    )
    assert next(parts).message.content == "a"
    with pytest.raises(ollama.ResponseError, match="broke"):
        next(parts)


@pytest.mark.parametrize("kind", ["", "overloaded", "html"])
def test_errors_raise_as_in_production(kind: str) -> None:
    wire = refused(OLLAMA_CHAT.refusal(Failed("busy", status=503, kind=kind)))
    with pytest.raises(ollama.ResponseError) as raised:
        ollama_client(wire).chat(**ASK)
    assert raised.value.status_code == 503


def test_a_reply_that_lacks_its_message() -> None:
    body = OLLAMA_CHAT.body(Completion((Text("x"),), "m", "message"), OLLAMA_CHAT.read_request("", ASK))
    assert json.loads(body)["message"] is None
    reply = ollama_client(plain(OLLAMA_CHAT, Completion((Text("x"),), "m", "choices"))).chat(**ASK)
    assert reply.message.content == ""
