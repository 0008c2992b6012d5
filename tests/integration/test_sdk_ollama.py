"""Ollama's own library through the gateway: chat and generate, plain, streamed and with tools. It never retries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import httpx
import ollama
import pydantic
import pytest
from gateway_kit import SCRIPTED, TEXT, Got, Place, attempt, provider, site_planes
from sdk_conversations import check_conversation, check_healthy, check_passing, check_repeats
from sdk_voices import OllamaChat, OllamaGenerate
from sdk_weather import BEGUN, CUT, Want, Wants, cases, check, drifts, fails, incomplete, invented, nonsense

from holdfast.model.scenario import Injection, Schedule

HOW = pytest.mark.parametrize("how", ["plain", "streamed"])
VOICES = pytest.mark.parametrize("voice", [OllamaChat, OllamaGenerate])


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with site_planes(SCRIPTED) as found:
        yield found


def _as_text(text: str) -> bool:
    """A call that cannot be read is shown as text: that is what Ollama does with it."""
    return text.startswith('{"name": "forecast", "arguments": ')


BOTH: Wants = drifts("stop", OllamaChat.smaller) | {
    "timeout": fails(httpx.RemoteProtocolError, says="without sending a response"),
    "timeout, the client's": fails(httpx.ReadTimeout),
    "slow_tokens, the client's": fails(httpx.ReadTimeout),
    "rate_limit": fails(ollama.ResponseError, says="429"),
    "rate_limit, retry-after": fails(ollama.ResponseError, says="429"),
    "rate_limit, heals": fails(ollama.ResponseError, says="429"),
    "quota": fails(ollama.ResponseError, says="exceeded your current quota"),
    "overloaded": fails(ollama.ResponseError, says="maximum pending requests exceeded (status code: 503)"),
    "overloaded, in stream": (
        fails(ollama.ResponseError, says="status code: 503"),
        fails(ollama.ResponseError, says="server busy", text=BEGUN),
    ),
    "server_error": fails(ollama.ResponseError, says="status code: 500"),
    "server_error, html": fails(ollama.ResponseError, says="502 Bad Gateway"),
    "context_length": fails(ollama.ResponseError, says="exceeds the context length (status code: 400)"),
    "stream_cut": (fails(httpx.RemoteProtocolError), fails(httpx.RemoteProtocolError, text=CUT)),
    "truncated": Want("length", CUT, usage=(1000, 4)),
    "truncated, silent": Want("stop", CUT, usage=(1000, 4)),
    "empty content": Want("stop", ""),
    "empty choices": Want("stop", ""),  # the format has no list of choices: what is left is an empty answer
    "garbage": Want("stop", nonsense),
    "slow_tokens": Want("stop"),
    "empty_choices": (Want("stop", ""), Want("stop", hollow=1)),
    "content_filter": Want("stop", ""),  # nor a word for a filtered answer
    "odd_chunks": (Want("stop", effect="no_effect"), Want("stop", hollow=2)),
}
CHAT: Wants = BOTH | {
    "empty message": replace(fails(pydantic.ValidationError, says="message"), failed=False),
    "malformed, not json": Want("stop", _as_text),
    "malformed, not object": Want("stop", _as_text),
    "unknown_tool": Want("stop", "", invented),
    "wrong_args": Want("stop", "", incomplete),
}
GENERATE: Wants = BOTH | {
    "empty message": Want("stop", ""),
    "malformed, not json": Want("stop", effect="no_effect"),  # it knows no tools
    "malformed, not object": Want("stop", effect="no_effect"),
    "unknown_tool": Want("stop", ""),
    "wrong_args": Want("stop", effect="no_effect"),
}


@pytest.mark.parametrize(("name", "how"), cases(CHAT))
def test_a_fault_is_met_by_the_chat_client_as_in_production(place: Place, name: str, how: str) -> None:
    check(place, OllamaChat, name, how, CHAT)


@pytest.mark.parametrize(("name", "how"), cases(GENERATE))
def test_a_fault_is_met_by_the_generate_client_as_in_production(place: Place, name: str, how: str) -> None:
    check(place, OllamaGenerate, name, how, GENERATE)


@HOW
@VOICES
def test_a_healthy_call_is_read_right(place: Place, voice: type[OllamaChat], how: str) -> None:
    check_healthy(place, voice, how, "stop")


@HOW
def test_a_conversation_with_a_tool(place: Place, how: str) -> None:
    check_conversation(place, OllamaChat, how)


def test_repeat_tool_call_asks_again_whatever_came_of_it(place: Place) -> None:
    check_repeats(place, OllamaChat)


def test_the_environment_alone_leads_the_library_here(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in place.address.environ.items():
        monkeypatch.setenv(name, value)
    with place.sail() as served, ollama.Client() as client:
        reply = client.chat("llama3.1:70b", [{"role": "user", "content": "How did ACME do?"}])
        models = client.list().models
    assert (reply.message.content, len(models)) == (TEXT, 1)
    assert [(e.event_type, e.error_type) for e in served.context.trace] == [("llm_call", ""), ("http_call", "")]


def test_the_async_client_meets_the_same(place: Place) -> None:
    async def talk(got: Got) -> None:
        async with ollama.AsyncClient(place.address.environ["OLLAMA_HOST"]) as client:
            try:
                await client.generate("llama3.1:70b", "How did ACME do?")
            except ollama.ResponseError as error:
                got.finish = str(error.status_code)
            asked = [{"role": "user", "content": "How did ACME do?"}]
            async for part in await client.chat("llama3.1:70b", asked, stream=True):
                got.text += part.message.content or ""

    with place.sail(Injection("llm", "*", "overloaded", {}, Schedule(times=1))) as served:
        got = attempt(lambda got: asyncio.run(talk(got)))
    assert (got.error, got.finish, got.text) == (None, "503", TEXT)
    assert [(e.n, e.retry, e.status) for e in served.calls] == [(1, 0, 503), (2, 0, 200)]


_END = b'"done":true,"done_reason":"stop","total_duration":1,"prompt_eval_count":1000,"eval_count":200}\n'
PLAIN = {
    "chat": b'{"model": "llama3.1:70b", "created_at": "2025-01-01T00:00:00.123456789Z", "odd": 1.50,\n'
    b' "message": {"role": "assistant", "content": "Ol\\u00e9"}, ' + _END,
    "generate": b'{"model": "llama3.1:70b", "created_at": "2025-01-01T00:00:00.1Z", "response": "Ol\\u00e9", ' + _END,
}
STREAM = {
    "chat": [
        b'{"model":"llama3.1:70b","message":{"role":"assistant","content":"Ol"},"done":false}\n',
        b'{"model":"llama3.1:70b","message":{"role":"assistant","content":"\\u00e9"},"done":false}\n',
        b'{"model":"llama3.1:70b","message":{"role":"assistant","content":""},' + _END,
    ],
    "generate": [
        b'{"model":"llama3.1:70b","response":"Ol\\u00e9","done":false}\n',
        b'{"model":"llama3.1:70b","response":"",' + _END,
    ],
}


@VOICES
def test_an_untouched_reply_of_a_server_passes_byte_for_byte(voice: type[OllamaChat]) -> None:
    name = "chat" if voice is OllamaChat else "generate"
    with provider() as server:
        check_passing(server, {"OLLAMA_HOST": server.url}, voice, f"/api/{name}", PLAIN[name], STREAM[name])
