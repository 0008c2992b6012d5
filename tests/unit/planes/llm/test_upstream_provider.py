"""Model calls passed on to a provider: where they go, with which key, and what a failure says."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from msgspec.structs import replace
from upstream_kit import chat, query
from upstream_server import AGENT, PLACEHOLDER, SAID, Server, answer, served

from free_port import free_port
from holdfast.planes.egress_policy import Policy
from holdfast.planes.llm.sources import provider_hosts
from holdfast.planes.llm.sources.model_client import ModelRefused, Question, drop_rejected
from holdfast.planes.llm.sources.provider_hosts import AgentHeaders, Key
from holdfast.planes.llm.sources.source import (
    PLACEHOLDER_KEY,
    NoModel,
    UpstreamDown,
    is_provider_failure,
)


def test_upstream_untouched_call_passes_with_the_agents_own_key() -> None:
    async def test(server: Server, route: Any) -> None:
        router = route(environ={"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-user"})
        assert await answer(router, chat("hi", headers=AGENT)) == (200, SAID)
        assert server.path == "/v1/chat/completions"
        assert (server.headers["authorization"], server.headers["x-own"]) == ("Bearer sk-agent", "1")
        assert server.headers["accept-encoding"] == "identity"

    served(test)


@pytest.mark.parametrize("headers", [(), PLACEHOLDER])
def test_upstream_call_without_a_key_gets_the_users_key(headers: Any) -> None:
    async def test(server: Server, route: Any) -> None:
        environ = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-user"}
        await answer(route(environ=environ), chat("hi", headers=headers))
        assert (server.path, server.headers["authorization"]) == ("/chat/completions", "Bearer sk-user")
        await answer(route(environ={"OPENAI_BASE_URL": server.url}), chat("hi", headers=headers))
        assert "authorization" not in server.headers

    served(test)


def test_upstream_host_named_by_the_agent_never_gets_the_users_key() -> None:
    async def test(server: Server, route: Any) -> None:
        router = route(environ={"OPENAI_API_KEY": "sk-user"}, policy=Policy([server.url]))
        await answer(router, chat("hi", base_url=server.url))
        assert server.path == "/v1/chat/completions"
        assert "authorization" not in server.headers

    served(test)


def test_upstream_host_named_by_the_agent_is_called_at_a_checked_address() -> None:
    async def test(server: Server, route: Any) -> None:
        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        named = f"http://api.openai.com:{urlsplit(server.url).port}"  # as an agent may put it, by its hosts file
        asked = chat("hi", base_url=named, headers=(("authorization", "Bearer k"),))
        with pytest.raises(UpstreamDown) as raised:
            await answer(route(policy=Policy(resolve=resolve)), asked)
        assert raised.value.code == "model-unavailable"
        await answer(route(policy=Policy([f"127.0.0.1:{urlsplit(server.url).port}"], resolve=resolve)), asked)
        assert server.path == "/v1/chat/completions"

    served(test)


@pytest.mark.parametrize(
    ("provider", "variable", "path", "header", "value"),
    [
        ("anthropic", "ANTHROPIC_BASE_URL", "/v1/messages", "x-api-key", "user-key"),
        ("google", "GOOGLE_GEMINI_BASE_URL", "/v1beta/models/g:generateContent", "x-goog-api-key", "user-key"),
        ("ollama", "OLLAMA_HOST", "/api/chat", "authorization", "Bearer user-key"),
    ],
)
def test_upstream_each_provider_gets_its_key_in_its_own_header(
    provider: str, variable: str, path: str, header: str, value: str
) -> None:
    key = {"anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY", "ollama": "OLLAMA_API_KEY"}[provider]

    async def test(server: Server, route: Any) -> None:
        base = server.url.removeprefix("http://") if provider == "ollama" else server.url
        router = route(environ={variable: base, key: "user-key"})
        await answer(router, query({"model": "m"}, provider=provider, path=f"{path}?key={PLACEHOLDER_KEY}"))
        assert (server.path, server.headers[header]) == (path, value)

    served(test)


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY"), ("google", "GOOGLE_API_KEY")],
)
def test_upstream_with_nothing_to_ask_names_the_three_ways(provider: str, variable: str) -> None:
    async def test(server: Server, route: Any) -> None:
        asked = query({"model": "m"}, provider=provider, path="/v1/x", headers=PLACEHOLDER)
        with pytest.raises(NoModel, match=rf"{variable} is not set.*key.*script: model.yaml.*--replay FILE"):
            await answer(route(), asked)

    served(test)


def test_upstream_without_a_local_ollama_names_the_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:

    gone = f"http://127.0.0.1:{free_port()}"
    ollama = provider_hosts.HOSTS["ollama"]
    monkeypatch.setitem(
        provider_hosts.HOSTS, "ollama", provider_hosts.ProviderHost(gone, ollama.base_variables, ollama.key_variables)
    )  # type: ignore[index]

    async def test(server: Server, route: Any) -> None:
        with pytest.raises(NoModel) as raised:
            await answer(route(), query({"model": "m"}, provider="ollama", path="/api/chat"))
        assert raised.value.code == "model-missing"

    served(test)


def test_upstream_error_does_not_contain_the_key() -> None:
    async def test(server: Server, route: Any) -> None:
        base = f"http://127.0.0.1:{free_port()}"
        router = route(environ={"GOOGLE_GEMINI_BASE_URL": base})
        asked = query({"model": "m"}, provider="google", path="/v1beta/models/g:generateContent?key=AIza-agent")
        with pytest.raises(UpstreamDown, match=base) as raised:
            await answer(router, asked)
        assert "AIza" not in str(raised.value)

    served(test)


def test_upstream_that_breaks_off_is_down() -> None:
    async def test(server: Server, route: Any) -> None:
        async def half(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            await response.write(b"data: {}\n\n")
            assert request.transport is not None
            request.transport.abort()
            return response

        server.respond = half
        router = route(environ={"OPENAI_BASE_URL": server.url})
        with pytest.raises(UpstreamDown) as raised:
            await answer(router, chat("hi", stream=True))
        assert raised.value.code == "model-unavailable"

    served(test)


def test_provider_failures_are_distinguished_from_answers() -> None:
    statuses = (200, 400, 401, 403, 404, 408, 409, 422, 429, 500, 529)
    asked = chat("hi")
    assert [s for s in statuses if is_provider_failure(s, asked)] == [401, 403, 404, 408, 429, 500, 529]
    other = replace(asked, codec=None)
    assert not is_provider_failure(404, other)  # a file that is not there
    assert not is_provider_failure(404, asked, billed=False)  # a script says so


@pytest.mark.parametrize(
    ("provider", "base", "path", "url"),
    [
        ("anthropic", "https://api.anthropic.com", "/messages", "https://api.anthropic.com/v1/messages"),
        (
            "anthropic",
            "https://api.anthropic.com",
            "/v1/messages?beta=true",
            "https://api.anthropic.com/v1/messages?beta=true",
        ),
        ("anthropic", "https://h/anthropic", "/v1/messages", "https://h/anthropic/v1/messages"),
        ("google", "https://g", "/models/m:generateContent", "https://g/v1beta/models/m:generateContent"),
        ("google", "https://g/v1beta", "/models/m:generateContent", "https://g/v1beta/models/m:generateContent"),
        ("google", "https://g", "/v1/models/m:generateContent", "https://g/v1/models/m:generateContent"),
    ],
)
def test_a_path_without_its_version_gets_one(provider: str, base: str, path: str, url: str) -> None:
    assert provider_hosts.join_url(provider, base, path) == url


# What a model's server rejects is read from its own words, and from nothing that Holdfast adds to them.


QUESTION = Question("judge-1", "Rate it.", "The answer")


@pytest.mark.parametrize(
    ("explanation", "dropped"),
    [
        ("Unsupported value: 'temperature' does not support 0", "temperature"),
        ("response_format of this type is not available", "json"),
        ("a system message is not allowed", "apart"),
    ],
)
def test_a_rejected_setting_is_left_out(explanation: str, dropped: str) -> None:
    changed = drop_rejected(QUESTION, ModelRefused("http://127.0.0.1:9", 400, explanation))
    assert changed is not None
    names = ("temperature", "json", "apart")
    assert [name for name in names if getattr(changed[0], name) != getattr(QUESTION, name)] == [dropped]


@pytest.mark.parametrize("origin", ["http://json.example", "http://temperature.example", "http://system.example"])
def test_words_in_the_address_are_not_a_reason(origin: str) -> None:
    assert drop_rejected(QUESTION, ModelRefused(origin, 400, "the model does not exist")) is None


COMMON = ((b"Host", b"127.0.0.1:1"), (b"User-Agent", b"OpenAI/Python 2.1"), (b"Connection", b"keep-alive, X-Hop"))
OWN = Key("ours", "x-api-key")


def headers(*more: tuple[bytes, bytes]) -> tuple[tuple[bytes, bytes], ...]:
    return (*COMMON, *more)


def test_hop_by_hop_headers_are_not_forwarded() -> None:
    found = AgentHeaders(headers((b"X-Hop", b"1"), (b"CONTENT-LENGTH", b"3"), (b"Authorization", b"Bearer theirs")))
    kept = ((b"User-Agent", b"OpenAI/Python 2.1"), (b"Authorization", b"Bearer theirs"))
    assert found.to_upstream() == (*kept, (b"accept-encoding", b"identity"))


def test_each_way_on_has_the_key_that_is_meant_for_it() -> None:
    found = AgentHeaders(headers((b"authorization", b"bearer  theirs "), (b"x-api-key", b"other")))
    assert found.key == "theirs"
    without = ((b"User-Agent", b"OpenAI/Python 2.1"), (b"accept-encoding", b"identity"))
    assert found.to_upstream(strip=True) == without
    assert found.to_upstream(OWN) == found.to_upstream(OWN, strip=True) == (*without, (b"x-api-key", b"ours"))
    assert (b"x-api-key", b"other") in found.to_upstream()


def test_a_missing_key_is_distinguished_from_an_empty_one() -> None:
    assert AgentHeaders(COMMON).key is None
    assert AgentHeaders(headers((b"Authorization", b"Bearer "))).key == ""
