"""Google's own library reads what the Gemini codec writes."""

from __future__ import annotations

import json
from random import Random

import pytest
from codec_clients import google_client, plain, quietly, refused, stream

from codec_kit import ASKED, CALLING, SUNNY
from holdfast.model.completion import Completion, Finish, Hollow, Text, ToolCall, Trouble
from holdfast.planes.llm.codecs.gemini import GEMINI, GEMINI_ARRAY
from holdfast.planes.llm.reply_sender import odd_frames
from holdfast.protocols.fault import Failed

errors, types = quietly("google.genai.errors"), quietly("google.genai.types")
ASK = {"model": "model-1", "contents": "Hello"}


def test_plain_text_finish_and_usage() -> None:
    reply = google_client(plain(GEMINI, SUNNY)).models.generate_content(**ASK)
    assert reply.text == SUNNY.text
    assert reply.candidates is not None
    assert reply.candidates[0].finish_reason == types.FinishReason.STOP
    assert reply.usage_metadata is not None
    assert (reply.usage_metadata.prompt_token_count, reply.usage_metadata.candidates_token_count) == (12, 7)
    assert reply.model_version == "model-1"


def test_plain_tool_calls() -> None:
    reply = google_client(plain(GEMINI, CALLING)).models.generate_content(**ASK)
    assert [(call.id, call.name, call.args) for call in reply.function_calls or []] == [
        (call.id, call.name, json.loads(call.arguments)) for call in CALLING.tool_calls
    ]


@pytest.mark.parametrize("odd", [False, True])
def test_streamed_text_and_calls(odd: bool) -> None:
    completion = Completion((*SUNNY.deltas[:2], *CALLING.deltas[1:]), "model-1")
    wire = stream(GEMINI, completion, (lambda f: odd_frames(f, Random(3))) if odd else (lambda f: f))
    chunks = list(google_client(wire).models.generate_content_stream(**ASK))
    texts = [part.text for chunk in chunks for part in chunk.candidates[0].content.parts if part.text]
    assert texts == ["It is ", "sunny — 21 °C."]
    calls = [call for chunk in chunks for call in chunk.function_calls or []]
    assert [call.args for call in calls] == [{"city": "Zürich", "days": 3}, {}]
    assert chunks[-1].usage_metadata is not None
    assert chunks[-1].usage_metadata.prompt_token_count == 20
    assert len({chunk.response_id for chunk in chunks}) == 1


def test_a_hollow_event_has_no_candidates() -> None:
    wire = stream(GEMINI, Completion((Text("a"), Hollow(), Text("b"))))
    chunks = list(google_client(wire).models.generate_content_stream(**ASK))
    assert [len(chunk.candidates or []) for chunk in chunks] == [1, 0, 1]


def test_filtered_content_is_safety() -> None:
    reply = google_client(plain(GEMINI, Completion((Finish("content_filter"),)))).models.generate_content(**ASK)
    assert reply.candidates is not None
    assert (reply.text, reply.candidates[0].finish_reason) == (None, types.FinishReason.SAFETY)


def test_a_call_that_the_format_cannot_carry_is_malformed_as_google_says_it() -> None:
    broken = Completion((ToolCall("t", "weather", '{"city": "Zür'), Finish("tool_calls")))
    chunks = list(google_client(stream(GEMINI, broken)).models.generate_content_stream(**ASK))
    for reply in (google_client(plain(GEMINI, broken)).models.generate_content(**ASK), chunks[-1]):
        assert not reply.function_calls
        assert reply.candidates is not None
        assert reply.candidates[0].finish_reason == types.FinishReason.MALFORMED_FUNCTION_CALL
    assert b'"finishMessage":"Malformed function call: weather(' in GEMINI.body(broken, ASKED)


@pytest.mark.parametrize("lacks", ["choices", "message"])
def test_a_reply_that_lacks_its_candidates_or_content(lacks: str) -> None:
    completion = Completion((Text("x"), Finish("stop")), "m", lacks)  # type: ignore[arg-type]
    chunks = list(google_client(stream(GEMINI, completion)).models.generate_content_stream(**ASK))
    for reply in (google_client(plain(GEMINI, completion)).models.generate_content(**ASK), *chunks):
        assert reply.text is None
        assert reply.candidates == [] if lacks == "choices" else reply.candidates[0].content is None


def test_without_server_sent_events_a_stream_is_an_array() -> None:
    frames = [frame for frame in GEMINI_ARRAY.frames(CALLING, ASKED) if isinstance(frame, bytes)]
    parts = json.loads(b"".join(frames))
    assert GEMINI.reply(parts).tool_calls == CALLING.tool_calls


@pytest.mark.parametrize(
    ("failed", "expected", "status"),
    [
        (Failed("slow down", status=429, retry_after_s=3), errors.ClientError, "RESOURCE_EXHAUSTED"),
        (Failed("busy", kind="overloaded"), errors.ServerError, "UNAVAILABLE"),
        (Failed("broken", status=500), errors.ServerError, "INTERNAL"),
        (Failed("long", kind="context_length"), errors.ClientError, "INVALID_ARGUMENT"),
        (Failed("who", kind="auth"), errors.ClientError, "UNAUTHENTICATED"),
        (Failed("bad gateway", kind="html"), errors.ServerError, "Bad Gateway"),
    ],
)
def test_errors_raise_as_in_production(failed: Failed, expected: type[Exception], status: str) -> None:
    with pytest.raises(expected) as raised:
        google_client(refused(GEMINI.refusal(failed))).models.generate_content(**ASK)
    assert raised.value.status == status
    assert ("'retryDelay': '3s'" in str(raised.value)) == bool(failed.retry_after_s)


def test_trouble_inside_a_stream_is_an_event_with_an_error() -> None:
    data = b"".join(
        f for f in GEMINI.frames(Completion((Text("a"), Trouble("overloaded", ""))), ASKED) if isinstance(f, bytes)
    )
    last = json.loads(data.strip().splitlines()[-1].removeprefix(b"data: "))
    assert (last["error"]["code"], last["error"]["status"]) == (503, "UNAVAILABLE")
