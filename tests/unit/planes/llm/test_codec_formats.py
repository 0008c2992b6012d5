"""Which format a path speaks, and which hosts are model providers'."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec_kit import ASKED, CALLING, CODECS, SUNNY, completions, read, sent, streamed
from example_counts import examples
from holdfast.model.completion import Completion, Cut, EmptyChunk, ErrorChunk, FinishReason, Pause, Text, Usage
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.formats import find_provider, find_route
from holdfast.planes.llm.reply_sender import split_oddly


@pytest.mark.parametrize(
    ("path", "codec"),
    [
        ("/chat/completions", "openai_chat"),
        ("/v1/chat/completions", "openai_chat"),
        ("/openai/v1/chat/completions", "openai_chat"),
        ("/api/v1/chat/completions", "openai_chat"),
        ("/inference/v1/chat/completions", "openai_chat"),
        ("/openai/deployments/gpt-x/chat/completions?api-version=2024-10-21", "openai_chat"),
        ("/v1/responses", "openai_responses"),
        ("/responses", "openai_responses"),
        ("/openai/responses?api-version=2025-03-01-preview", "openai_responses"),
        ("/v1beta/openai/chat/completions", "openai_chat"),
        ("/v1/projects/p/locations/l/endpoints/openapi/chat/completions", "openai_chat"),
        ("/openai/v1/responses", "openai_responses"),
        ("/v1/messages", "anthropic"),
        ("/v1/messages?beta=true", "anthropic"),
        ("/messages", "anthropic"),
        ("/anthropic/v1/messages", "anthropic"),
        ("/v1beta/models/gemini-2.5-flash:generateContent", "gemini"),
        ("/models/gemini-2.5-flash:generateContent", "gemini"),
        ("/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "gemini"),
        ("/v1beta1/projects/p/locations/l/publishers/google/models/g:generateContent", "gemini"),
        ("/api/chat", "ollama_chat"),
        ("/chat", "ollama_chat"),
        ("/api/generate", "ollama_generate"),
        ("/generate", "ollama_generate"),
    ],
)
def test_completions_are_found_with_and_without_their_mounts(path: str, codec: str) -> None:
    route = find_route("POST", path)
    assert route is not None
    assert route.codec is not None
    assert (route.kind, route.codec.name, route.codec.provider) == ("completion", codec, route.provider)


def test_a_gemini_stream_without_events_is_an_array() -> None:
    route = find_route("POST", "/v1beta/models/g:streamGenerateContent")
    assert route is not None
    assert route.codec is not None
    assert route.codec.stream_type == "application/json"


@pytest.mark.parametrize(
    ("method", "path", "kind", "provider"),
    [
        ("POST", "/v1/embeddings", "embeddings", "openai"),
        ("POST", "/openai/deployments/e/embeddings", "embeddings", "openai"),
        ("POST", "/v1beta/models/e:batchEmbedContents", "embeddings", "google"),
        ("POST", "/v1beta/models/e:embedContent", "embeddings", "google"),
        ("POST", "/api/embed", "embeddings", "ollama"),
        ("GET", "/v1/models", "models", "openai"),
        ("GET", "/models/gpt-x", "models", "openai"),
        ("GET", "/v1beta/models", "models", "google"),
        ("GET", "/v1beta/models/gemini-2.5-flash", "models", "google"),
        ("GET", "/api/tags", "models", "ollama"),
        ("POST", "/v1beta/models/g:countTokens", "other", "google"),
        ("POST", "/v1/messages/count_tokens", "other", "anthropic"),
        ("POST", "/api/show", "other", "ollama"),
        ("GET", "/v1/responses/resp_1/input_items", "other", "openai"),
        ("DELETE", "/v1/responses/resp_1", "other", "openai"),
        ("POST", "/v1/responses/resp_1/cancel", "other", "openai"),
        ("POST", "/v1/completions", "other", "openai"),
        ("POST", "/v1/audio/speech", "other", "openai"),
    ],
)
def test_the_rest_is_passed_on_by_kind(method: str, path: str, kind: str, provider: str) -> None:
    route = find_route(method, path)
    assert route is not None
    assert (route.codec, route.kind, route.provider) == (None, kind, provider)


@pytest.mark.parametrize("path", ["/v1/responses/resp_1", "/openai/v1/responses/resp_1?stream=true", "/responses/r"])
def test_a_reply_that_is_fetched_is_read(path: str) -> None:
    route = find_route("GET", path)
    assert route is not None
    assert route.codec is not None
    assert (route.kind, route.codec.name, route.provider) == ("reply", "openai_responses", "openai")


@pytest.mark.parametrize(
    ("path", "unread"),
    [
        ("/model/anthropic.claude-v2/converse", "Bedrock Converse"),
        ("/model/a%3A0/converse-stream", "Bedrock Converse"),
        ("/model/m/invoke-with-response-stream", "Bedrock InvokeModel"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict", "Vertex AI rawPredict"),
        ("/v1beta/interactions", "Gemini Interactions"),
        ("/v1/interactions", "Gemini Interactions"),
        ("/v1/ai/language-model", "the AI Gateway's own format"),
        ("/v1/fim/completions", "Mistral FIM"),
        ("/v1/completions", ""),
        ("/v1/chat/completions", ""),
        ("/v1beta/models/g:generateContent", ""),
        ("/v1/embeddings", ""),
    ],
)
def test_model_calls_in_a_format_that_no_codec_reads_are_known(path: str, unread: str) -> None:
    route = find_route("POST", path)
    assert route is not None
    assert route.unread == unread
    assert route.codec is None or not unread


@pytest.mark.parametrize(("method", "path"), [("POST", "/"), ("GET", "/favicon.ico"), ("POST", "/v1/unknown")])
def test_a_path_of_no_provider(method: str, path: str) -> None:
    assert find_route(method, path) is None


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("api.openai.com", "openai"),
        ("API.OpenAI.com.", "openai"),
        ("mine.openai.azure.com", "openai"),
        ("api.anthropic.com", "anthropic"),
        ("generativelanguage.googleapis.com", "google"),
        ("europe-west1-aiplatform.googleapis.com", "google"),
        ("api.groq.com", "openai"),
        ("api.mistral.ai", "openai"),
        ("openrouter.ai", "openai"),
        ("api.together.xyz", "openai"),
        ("api.deepseek.com", "openai"),
        ("api.x.ai", "openai"),
        ("api.fireworks.ai", "openai"),
        ("router.huggingface.co", "openai"),
        ("api.together.ai", "openai"),
        ("codestral.mistral.ai", "openai"),
        ("models.inference.ai.azure.com", "openai"),
        ("api.tokenfactory.nebius.com", "openai"),
        ("ollama.com", "ollama"),
        ("api.cohere.com", None),
        ("example.com", None),
        ("openai.com.example.com", None),
        ("notapi.openai.com.", None),
        ("storage.googleapis.com", None),
        ("docs.anthropic.com", None),
    ],
)
def test_hosts_of_providers_are_known(host: str, provider: str | None) -> None:
    assert find_provider(host) == provider


# What a codec writes, it reads back: plain and streamed, whole and split anywhere.


every_codec = pytest.mark.parametrize("name", CODECS)


def read_back(codec: Codec, completion: Completion, *, stream: bool = False) -> tuple[object, ...]:
    """What a reply says, as far as the format can say it."""
    usage = completion.usage
    if stream and codec.name == "openai_responses" and completion.finish is None:  # the last event says both
        usage = None
    if codec.name == "anthropic":  # counts are always there, and 0 where nothing is known
        usage = usage or Usage(0, 0)
    return completion.text, calls_told(codec, completion), finish_told(codec, completion), usage, completion.model


def calls_told(codec: Codec, completion: Completion) -> tuple[object, ...]:
    if codec.name == "ollama_generate":
        return ()
    return tuple((call.id, call.name, json.loads(call.arguments)) for call in completion.tool_calls)


def finish_told(codec: Codec, completion: Completion) -> FinishReason | None:
    finish = completion.finish
    if codec.name in ("openai_chat", "anthropic") or finish in (None, "length"):
        return finish
    if finish == "content_filter" and not codec.name.startswith("ollama"):
        return finish
    return "tool_calls" if calls_told(codec, completion) else "stop"


@pytest.mark.slow
@every_codec
@settings(max_examples=examples(40), deadline=None)
@given(completion=completions())
def test_a_plain_reply_reads_back(name: str, completion: Completion) -> None:
    codec = CODECS[name]
    again = codec.read_reply(json.loads(codec.write_body(completion, ASKED)))
    assert read_back(codec, again) == read_back(codec, completion)


@pytest.mark.slow
@every_codec
@settings(max_examples=examples(40), deadline=None)
@given(completion=completions())
def test_a_stream_reads_back_with_its_chunks(name: str, completion: Completion) -> None:
    codec = CODECS[name]
    again = read(codec, streamed(codec, completion))
    assert read_back(codec, again) == read_back(codec, completion, stream=True)
    chunks = [delta.text for delta in again.deltas if isinstance(delta, Text)]
    assert chunks == [delta.text for delta in completion.deltas if isinstance(delta, Text)]


@pytest.mark.slow
@every_codec
@settings(max_examples=examples(20), deadline=None)
@given(completion=completions(), seed=st.integers(0, 99))
def test_odd_frames_say_the_same_and_the_same_seed_the_same_bytes(name: str, completion: Completion, seed: int) -> None:
    codec = CODECS[name]
    pieces = list(split_oddly(codec.write_frames(completion, ASKED), Random(seed)))
    assert pieces == list(split_oddly(codec.write_frames(completion, ASKED), Random(seed)))
    assert read_back(codec, read(codec, sent(pieces))) == read_back(codec, completion, stream=True)


def test_odd_frames_cut_inside_characters_and_put_comments_between_events() -> None:
    pieces = list(split_oddly(CODECS["openai_chat"].write_frames(SUNNY, ASKED), Random(1)))
    assert any(isinstance(piece, bytes) and piece[0] & 0xC0 == 0x80 for piece in pieces)
    assert b": keep-alive\n\n" in b"".join(piece for piece in pieces if isinstance(piece, bytes))


def oddly(name: str, completion: Completion, seed: int = 1) -> bytes:
    pieces = split_oddly(CODECS[name].write_frames(completion, ASKED), Random(seed))
    return b"".join(piece for piece in pieces if isinstance(piece, bytes))


@pytest.mark.parametrize("name", ["ollama_chat", "gemini", "gemini_array"])
def test_odd_frames_have_comments_only_where_the_format_allows_them(name: str) -> None:
    assert b": keep-alive" not in oddly(name, CALLING)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", [name for name in CODECS if name != "gemini_array"])
def test_odd_frames_repeat_only_empty_frames(name: str, seed: int) -> None:
    ends = b"\r\n\r\n" if name == "gemini" else b"\n" if name.startswith("ollama") else b"\n\n"
    sent = [frame for frame in oddly(name, SUNNY, seed).split(ends) if frame and not frame.startswith(b":")]
    (twice,) = {frame for frame in sent if sent.count(frame) > 1}
    assert not any(word in twice for word in (b"It is", b"sunny"))


def test_odd_frames_repeat_nothing_in_an_array_of_json() -> None:
    assert oddly("gemini_array", SUNNY) == streamed(CODECS["gemini_array"], SUNNY)


@every_codec
def test_pauses_and_cuts_pass_through_in_their_place(name: str) -> None:
    completion = Completion((Pause(5), Text("a"), Pause(7), Text("b"), Cut(), Text("c")))
    frames = list(CODECS[name].write_frames(completion, ASKED))
    assert frames[0] == Pause(5)
    assert frames[-1] == Cut()
    assert [frame for frame in frames if isinstance(frame, Pause)] == [Pause(5), Pause(7)]
    again = read(CODECS[name], streamed(CODECS[name], completion))
    assert (again.text, again.finish) == ("ab", None)


@every_codec
def test_a_plain_reply_leaves_pauses_and_cuts_out(name: str) -> None:
    body = CODECS[name].write_body(Completion((Pause(5), *SUNNY.deltas, Cut()), "model-1"), ASKED)
    assert CODECS[name].read_reply(json.loads(body)).text == SUNNY.text


@every_codec
def test_trouble_ends_the_reply_and_reads_back(name: str) -> None:
    codec = CODECS[name]
    completion = Completion((Text("half "), ErrorChunk("rate_limit", "slow down"), Text("never")), "model-1")
    again = read(codec, streamed(codec, completion))
    assert again.text == "half "
    assert isinstance(again.deltas[-1], ErrorChunk)
    plain = codec.read_reply(json.loads(codec.write_body(completion, ASKED)))
    assert [type(delta) for delta in plain.deltas] == [ErrorChunk]
    if not codec.name.startswith("ollama"):  # whose errors are bare texts
        assert again.deltas[-1].kind == "rate_limit"


@every_codec
def test_a_hollow_chunk_is_sent_and_changes_nothing(name: str) -> None:
    codec = CODECS[name]
    completion = Completion((EmptyChunk(), Text("a"), EmptyChunk(), *SUNNY.deltas[2:]), "model-1")
    again = read(codec, streamed(codec, completion))
    assert read_back(codec, again) == read_back(codec, completion)
    assert len(streamed(codec, completion)) > len(
        streamed(codec, Completion((Text("a"), *SUNNY.deltas[2:]), "model-1"))
    )


@every_codec
def test_the_same_reply_is_the_same_bytes_and_another_conversation_another_id(name: str) -> None:
    codec = CODECS[name]
    assert codec.write_body(SUNNY, ASKED) == codec.write_body(SUNNY, ASKED)
    assert streamed(codec, SUNNY) == streamed(codec, SUNNY)
    if not codec.name.startswith("ollama"):  # which has no ids
        longer = codec.read_request(
            "/v1/x", {"model": "model-1", "input": "b", "messages": [{"role": "user", "content": "b"}]}
        )
        longer = longer if codec.provider != "google" else codec.read_request("m:g", {"contents": "b"})
        assert codec.write_body(SUNNY, ASKED) != codec.write_body(SUNNY, longer)


def test_lone_halves_of_characters_are_carried() -> None:
    for codec in CODECS.values():
        again = codec.read_reply(json.loads(codec.write_body(Completion((Text("a\ud83d"),)), ASKED)))
        assert again.text == "a\ud83d"
        assert read(codec, streamed(codec, Completion((Text("a\ud83d"),)))).text == "a\ud83d"
