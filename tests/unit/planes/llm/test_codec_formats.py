"""Which format a path speaks, and which hosts are model providers'."""

from __future__ import annotations

import pytest

from holdfast.planes.llm.codecs.formats import find_provider, find_route


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
