"""Model calls under `models:`, scripts and recordings: who answers, and in whose format."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from upstream_kit import chat, message, query, script
from upstream_server import AGENT, PLACEHOLDER, SAID, Server, answer, served

from holdfast.errors import SpecError, UsageError
from holdfast.http1.client import Upstreams
from holdfast.model.model_spec import ModelSpec
from holdfast.planes.llm.sources.router import Router
from holdfast.planes.llm.sources.source import (
    PassedReply,
    WrittenReply,
    WrongFormat,
)


def test_upstream_entry_replaces_name_key_and_address() -> None:
    async def test(server: Server, route: Any) -> None:
        models = {"gpt-4o": ModelSpec(name="qwen", base_url=server.url, api_key="sk-entry")}
        await answer(route(models), chat("hi", headers=AGENT))
        path, headers, body = server.seen[-1]
        assert (path, headers["authorization"], body["model"]) == ("/v1/chat/completions", "Bearer sk-entry", "qwen")
        assert body["messages"] == [{"role": "user", "content": "hi"}]

    served(test)


def test_upstream_entry_of_another_server_never_gets_the_agents_key() -> None:
    async def test(server: Server, route: Any) -> None:
        models = {"*": ModelSpec(base_url=f"{server.url}/v1")}
        await answer(route(models, {"OPENAI_API_KEY": "sk-user"}), chat("hi", headers=AGENT))
        assert "authorization" not in server.headers

    served(test)


def test_upstream_entry_of_google_is_renamed_in_the_path() -> None:
    async def test(server: Server, route: Any) -> None:
        models = {"*": ModelSpec(provider="google", name="new", base_url=server.url, api_key="k")}
        asked = query({"contents": []}, provider="google", path="/v1beta/models/old:generateContent?alt=sse&key=agent")
        await answer(route(models), asked)
        assert (server.path, server.headers["x-goog-api-key"]) == ("/v1beta/models/new:generateContent?alt=sse", "k")

    served(test)


def test_upstream_routes_by_exact_name_then_by_glob_in_file_order() -> None:
    async def test(server: Server, route: Any) -> None:
        names = ("gpt-*", "*", "gpt-4o")
        router = route({name: ModelSpec(name=f"for {name}", base_url=server.url) for name in names})
        for model in ("gpt-4o", "gpt-5", "other"):
            await answer(router, chat("hi", model=model))
        assert [body["model"] for _, _, body in server.seen] == ["for gpt-4o", "for gpt-*", "for *"]

    served(test)


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_upstream_of_another_format_gets_a_translated_request(provider: Any) -> None:
    async def test(server: Server, route: Any) -> None:
        models = {"claude*": ModelSpec(provider=provider, name="qwen", base_url=server.url, api_key="k")}
        asked = message("hi", headers=(("x-api-key", "agent"), ("anthropic-version", "2023-06-01")))
        answered = await route(models).get_source("anthropic", asked.model).answer(asked)
        assert isinstance(answered, WrittenReply)
        assert (answered.completion.text, answered.completion.finish) == ("Hello", "stop")
        path, headers, body = server.seen[-1]
        assert (path, headers["authorization"], body["model"]) == ("/v1/chat/completions", "Bearer k", "qwen")
        assert "x-api-key" not in headers
        assert body["messages"] == [{"role": "user", "content": "hi"}]

    served(test)


def test_upstream_in_translation_is_read_to_the_end_of_its_stream() -> None:
    async def test(server: Server, route: Any) -> None:
        async def stream(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
            await response.prepare(request)
            for text in ("Hel", "lo"):
                chunk = {"choices": [{"index": 0, "delta": {"content": text}}]}
                await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
            await response.write(b"data: [DONE]\n\n")
            return response

        server.respond = stream
        asked = message("hi", stream=True)
        answered = await route({"*": ModelSpec(base_url=server.url)}).get_source("anthropic", asked.model).answer(asked)
        assert isinstance(answered, WrittenReply)
        assert answered.completion.text == "Hello"
        assert server.seen[-1][2]["stream"] is True

    served(test)


def test_upstream_error_in_translation_has_the_shape_that_the_agent_knows() -> None:
    async def test(server: Server, route: Any) -> None:
        async def limited(request: web.Request) -> web.StreamResponse:
            error = {"error": {"message": "too many", "type": "requests"}}
            return web.json_response(error, status=429, headers={"retry-after": "7"})

        server.respond = limited
        asked = message("hi")
        answered = await route({"*": ModelSpec(base_url=server.url)}).get_source("anthropic", asked.model).answer(asked)
        assert isinstance(answered, PassedReply)
        assert answered.wire.get("retry-after") == "7"
        body = json.loads(await answered.wire.read())
        assert (answered.wire.status, body["error"]) == (429, {"type": "rate_limit_error", "message": "too many"})

    served(test)


@pytest.mark.parametrize("provider", ["anthropic", "google"])
def test_upstream_without_the_agents_format_is_an_error(provider: Any) -> None:
    async def test(server: Server, route: Any) -> None:
        asked = chat("hi")
        with pytest.raises(WrongFormat, match=f"gpt-4o is served by {provider}.*format of openai"):
            await answer(route({"*": ModelSpec(provider=provider, base_url=server.url)}), asked)
        assert server.seen == []

    served(test)


def test_upstream_without_a_responses_api_gets_chat_completions() -> None:
    from holdfast.planes.llm.codecs.openai_responses import OpenAIResponses

    async def test(server: Server, route: Any) -> None:
        async def chat_only(request: web.Request) -> web.StreamResponse:
            known = request.path.endswith("/chat/completions")
            return web.json_response(SAID if known else {"error": "no"}, status=200 if known else 404)

        server.respond = chat_only
        router = route({"*": ModelSpec(base_url=server.url)})
        asked = query({"model": "m", "input": "hi"}, codec=OpenAIResponses(), path="/v1/responses")
        for _ in range(2):
            answered = await router.get_source("openai", "m").answer(asked)
            assert isinstance(answered, WrittenReply)
            assert answered.completion.text == "Hello"
        paths = [path for path, _, _ in server.seen]
        assert paths == ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]

    served(test)


def test_upstream_is_recorded_and_then_replayed_without_it(tmp_path: Path) -> None:
    async def test(server: Server, route: Any) -> None:
        file = tmp_path / "c.jsonl"
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-user"}
        router = route(environ=environ, record=file)
        assert await answer(router, chat("hi", headers=AGENT)) == (200, SAID)
        router.close()
        assert await answer(route(replay=file), chat("hi", headers=PLACEHOLDER)) == (200, SAID)
        assert len(server.seen) == 1
        assert "sk-" not in file.read_text()

    served(test)


def test_upstream_models_are_listed_by_whoever_is_there(tmp_path: Path) -> None:
    script(tmp_path, "  - text: x\n")

    async def run() -> None:
        upstreams = Upstreams()
        router = Router({"gpt-4o": ModelSpec(script="model.yaml")}, {}, tmp_path, upstreams)
        status, body = await answer(router, query(None, method="GET", path="/v1/models"))
        assert (status, [model["id"] for model in body["data"]]) == (200, ["gpt-4o"])
        await upstreams.close()

    asyncio.run(run())


def test_upstream_script_that_is_wrong_is_refused_before_any_trial(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text("reply: x\n")
    with pytest.raises(SpecError):
        Router({"*": ModelSpec(script="model.yaml")}, {}, tmp_path, Upstreams())


def test_recording_and_replaying_cannot_be_combined(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Router({}, {}, tmp_path, Upstreams(), record=tmp_path / "a", replay=tmp_path / "b")


def test_upstream_script_counters_are_forgotten_with_the_trial(tmp_path: Path) -> None:
    script(tmp_path, "  - {text: first, times: 1}\n  - {text: later}\n")
    router = Router({"*": ModelSpec(script="model.yaml")}, {}, tmp_path, Upstreams())

    async def ask() -> str:
        answered = await router.get_source("openai", "gpt-4o").answer(chat("hi"))
        assert isinstance(answered, WrittenReply)
        return answered.completion.text

    async def run() -> list[str]:
        texts = [await ask(), await ask()]
        router.forget("t1")
        return [*texts, await ask()]

    assert asyncio.run(run()) == ["first", "later", "first"]
