"""Google's own library through the gateway: generateContent, plain, streamed and with tools. It never retries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from gateway_kit import SCRIPTED, TEXT, Got, Place, attempt, provider, site_planes
from sdk_conversations import check_conversation, check_healthy, check_passing, check_repeats
from sdk_voices import Google, genai
from sdk_weather import (
    BEGUN,
    CUT,
    Want,
    Wants,
    cases,
    check,
    drifts,
    fails,
    incomplete,
    invented,
    nonsense,
)

from holdfast.model.scenario import Injection, Schedule

HOW = pytest.mark.parametrize("how", ["plain", "streamed"])
ITS_OWN_WARNING = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with site_planes(SCRIPTED) as found:
        yield found


ClientError, ServerError = genai.errors.ClientError, genai.errors.ServerError

GOOGLE: Wants = drifts("STOP", Google.smaller) | {
    "timeout": fails(httpx2.RemoteProtocolError, says="without sending a response"),
    "timeout, the client's": fails(httpx2.ReadTimeout),
    "slow_tokens, the client's": fails(httpx2.ReadTimeout),
    "rate_limit": fails(ClientError, says="429 RESOURCE_EXHAUSTED"),
    "rate_limit, retry-after": fails(ClientError, says="'retryDelay': '0.2s'"),
    "rate_limit, heals": fails(ClientError, says="429 RESOURCE_EXHAUSTED"),
    "quota": fails(ClientError, says="QuotaFailure"),
    "overloaded": fails(ServerError, says="503 UNAVAILABLE"),
    "overloaded, in stream": (
        fails(ServerError, says="503 UNAVAILABLE"),
        fails(ServerError, says="503 UNAVAILABLE", text=BEGUN),
    ),
    "server_error": fails(ServerError, says="500 INTERNAL"),
    "server_error, html": fails(ServerError, says="502 Bad Gateway"),
    "context_length": fails(ClientError, says="exceeds the maximum number of tokens"),
    "stream_cut": (fails(httpx2.RemoteProtocolError), fails(httpx2.RemoteProtocolError, text=CUT)),
    "truncated": Want("MAX_TOKENS", CUT, usage=(1000, 4)),
    "truncated, silent": Want("STOP", CUT, usage=(1000, 4)),
    "empty content": Want("STOP", ""),
    "empty choices": Want(None, "", lacks="choices", hollow=1),
    "empty message": Want("STOP", "", lacks="message"),
    "garbage": Want("STOP", nonsense),
    "slow_tokens": Want("STOP"),
    "empty_choices": (Want(None, "", lacks="choices", hollow=1), Want("STOP", hollow=1)),
    "content_filter": Want("SAFETY", "", lacks="message"),
    "malformed, not json": Want("MALFORMED_FUNCTION_CALL", ""),  # Google never passes such a call on
    "malformed, not object": Want("MALFORMED_FUNCTION_CALL", ""),
    "unknown_tool": Want("STOP", "", invented),
    "wrong_args": Want("STOP", "", incomplete),
    "odd_chunks": (Want("STOP", effect="no_effect"), Want("STOP")),
}


@pytest.mark.parametrize(("name", "how"), cases(GOOGLE))
def test_a_fault_is_met_by_the_client_as_in_production(place: Place, name: str, how: str) -> None:
    check(place, Google, name, how, GOOGLE)


@HOW
def test_a_healthy_call_is_read_right_and_costs_what_it_costs(place: Place, how: str) -> None:
    check_healthy(place, Google, how, "STOP")


@HOW
def test_a_conversation_with_a_tool(place: Place, how: str) -> None:
    check_conversation(place, Google, how)


def test_repeat_tool_call_asks_again_whatever_came_of_it(place: Place) -> None:
    check_repeats(place, Google)


def test_the_environment_alone_leads_the_library_here(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in place.address.environ.items():
        monkeypatch.setenv(name, value)
    with place.sail() as served, genai.Client() as client:
        reply = client.models.generate_content(model="gemini-2.5-flash", contents="How did ACME do?")
    assert reply.text == TEXT
    assert [(e.tool, e.error_type) for e in served.calls] == [("gemini-2.5-flash", "")]


def _async(place: Place, how: str) -> Any:
    async def talk(got: Got) -> None:
        options = genai.types.HttpOptions(base_url=place.address.environ["GOOGLE_GEMINI_BASE_URL"])
        client = genai.Client(api_key="sk-agent", http_options=options)
        ask = {"model": "gemini-2.5-flash", "contents": "How did ACME do?"}
        async with client.aio as models:
            if how == "plain":
                got.text = (await models.models.generate_content(**ask)).text
                return
            async for chunk in await models.models.generate_content_stream(**ask):
                got.text += chunk.text or ""

    return attempt(lambda got: asyncio.run(talk(got)))


@HOW
@ITS_OWN_WARNING
def test_the_async_client_does_not_retry_a_refusal_either(place: Place, how: str) -> None:
    with place.sail(Injection("llm", "*", "rate_limit", {}, Schedule(times=1))) as served:
        refused, healthy = _async(place, how), _async(place, how)
    assert type(refused.error) is ClientError
    assert (healthy.error, healthy.text) == (None, TEXT)
    assert [e.status for e in served.calls] == [429, 200]


@ITS_OWN_WARNING
def test_the_async_client_repeats_a_lost_connection_once_and_is_told_from_the_agent(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("google.genai._api_client.random.randint", lambda low, high: -1)  # its wait: 1 to 10 s
    with place.sail(Injection("llm", "*", "timeout", {"delay_ms": 10}, Schedule(times=1))) as served:
        got = _async(place, "plain")
    assert (got.error, got.text) == (None, TEXT)
    assert [(e.n, e.retry, e.error_type) for e in served.calls] == [(1, 0, "timeout"), (2, 1, "")]


PLAIN = b"""{ "candidates": [ { "content": { "parts": [ { "text": "Ol\\u00e9" } ], "role": "model" },
 "finishReason": "STOP", "avgLogprobs": -0.10 } ], "usageMetadata": { "promptTokenCount": 1000,
 "candidatesTokenCount": 200, "totalTokenCount": 1200 }, "modelVersion": "gemini-2.5-flash", "responseId": "r9" }\n"""
STREAM = [
    b'data: {"candidates": [{"content": {"parts": [{"text": "Ol"}],"role": "model"}}],"modelVersion": '
    b'"gemini-2.5-flash","responseId": "r9"}\r\n\r\n',
    b'data: {"candidates": [{"content": {"parts": [{"text": "\\u00e9"}],"role": "model"},"finishReason": "STOP"}],'
    b'"usageMetadata": {"promptTokenCount": 1000,"candidatesTokenCount": 200,"totalTokenCount": 1200},"modelVersion": '
    b'"gemini-2.5-flash","responseId": "r9"}\r\n\r\n',
]


def test_an_untouched_reply_of_a_provider_passes_byte_for_byte() -> None:
    with provider() as server:
        environ = {"GOOGLE_GEMINI_BASE_URL": server.url, "GOOGLE_API_KEY": "sk-user"}
        seen = check_passing(server, environ, Google, "/models/gemini-2.5-flash", PLAIN, STREAM)
    assert [headers["x-goog-api-key"] for _, headers, _ in seen] == ["sk-agent", "sk-user"] * 2
