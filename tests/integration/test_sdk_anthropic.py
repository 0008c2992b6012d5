"""Anthropic's own library through the gateway: Messages, plain, streamed and with tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import anthropic
import httpx2
import pytest
from anthropic._exceptions import OverloadedError
from gateway_kit import SCRIPTED, TEXT, Got, Place, attempt, provider, site_planes
from sdk_conversations import check_conversation, check_healthy, check_passing, check_repeats
from sdk_voices import Messages
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
    no_object,
    nonsense,
    unreadable,
)

from holdfast.model.scenario import Injection, Schedule

HOW = pytest.mark.parametrize("how", ["plain", "streamed"])


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with site_planes(SCRIPTED) as found:
        yield found


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library waits less between its attempts where nobody tells it how long."""
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0.005)


MESSAGES: Wants = drifts("end_turn", Messages.smaller) | {
    "timeout": fails(anthropic.APIConnectionError, 3),
    "timeout, the client's": fails(anthropic.APITimeoutError, 3),
    "slow_tokens, the client's": fails(anthropic.APITimeoutError, 3),
    "rate_limit": fails(anthropic.RateLimitError, 3, "rate_limit_error"),
    "rate_limit, retry-after": fails(anthropic.RateLimitError, 3, "rate_limit_error"),
    "rate_limit, heals": Want("end_turn", requests=3),
    "quota": fails(anthropic.RateLimitError, 3, "spend limit"),
    "overloaded": fails(OverloadedError, 3, "529"),
    "overloaded, in stream": (
        fails(OverloadedError, 3, "529"),
        fails(anthropic.APIStatusError, 1, "overloaded_error", BEGUN),
    ),
    "server_error": fails(anthropic.InternalServerError, 3, "api_error"),
    "server_error, html": fails(anthropic.InternalServerError, 3, "502 Bad Gateway"),
    "context_length": fails(anthropic.BadRequestError, 1, "prompt is too long"),
    "stream_cut": (fails(anthropic.APIConnectionError, 3), fails(httpx2.RemoteProtocolError, 1, text=CUT)),
    "truncated": Want("max_tokens", CUT, usage=(1000, 4)),
    "truncated, silent": Want("end_turn", CUT, usage=(1000, 4)),
    "empty content": (Want("end_turn", "", lacks="choices"), Want("end_turn", "")),
    "empty choices": (Want("end_turn", "", lacks="choices"), Want("end_turn", "")),
    "empty message": (Want("end_turn", "", lacks="message"), Want("end_turn", "")),
    "garbage": Want("end_turn", nonsense),
    "slow_tokens": Want("end_turn"),
    "empty_choices": (Want("end_turn", "", lacks="choices"), Want("end_turn")),  # a ping, which the library leaves out
    "content_filter": (Want("refusal", "", lacks="choices"), Want("refusal", "")),
    "malformed, not json": Want("tool_use", "", unreadable),
    "malformed, not object": Want("tool_use", "", no_object),
    "unknown_tool": Want("tool_use", "", invented),
    "wrong_args": Want("tool_use", "", incomplete),
    "odd_chunks": (Want("end_turn", effect="no_effect"), Want("end_turn")),
}


@pytest.mark.parametrize(("name", "how"), cases(MESSAGES))
def test_a_fault_is_met_by_the_messages_client_as_in_production(place: Place, name: str, how: str) -> None:
    check(place, Messages, name, how, MESSAGES)


@HOW
def test_a_healthy_call_is_read_right_and_costs_what_it_costs(place: Place, how: str) -> None:
    check_healthy(place, Messages, how, "end_turn")


@HOW
def test_a_conversation_with_a_tool(place: Place, how: str) -> None:
    check_conversation(place, Messages, how)


def test_repeat_tool_call_asks_again_whatever_came_of_it(place: Place) -> None:
    check_repeats(place, Messages)


def test_the_environment_alone_leads_the_library_here(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in place.address.environ.items():
        monkeypatch.setenv(name, value)
    ask = {"model": "claude-sonnet-4-8", "max_tokens": 500, "messages": [{"role": "user", "content": "How did it go?"}]}
    with place.sail() as served, anthropic.Anthropic() as client, client.messages.stream(**ask) as stream:
        final = stream.get_final_message()
    assert (final.content[0].text, final.usage.input_tokens) == (TEXT, 1000)
    assert [(e.tool, e.error_type) for e in served.calls] == [("claude-sonnet-4-8", "")]


def test_the_async_client_meets_the_same(place: Place) -> None:
    async def talk(got: Got) -> None:
        base, key = place.address.environ["ANTHROPIC_BASE_URL"], "sk-agent"
        async with anthropic.AsyncAnthropic(base_url=base, api_key=key, timeout=10) as client:
            said = [{"role": "user", "content": "How did ACME do?"}]
            async with client.messages.stream(model="claude-sonnet-4-8", max_tokens=500, messages=said) as stream:
                async for text in stream.text_stream:
                    got.text += text
            reply = await client.messages.create(model="claude-sonnet-4-8", max_tokens=500, messages=said)
            got.finish = reply.stop_reason

    with place.sail(Injection("llm", "*", "overloaded", {}, Schedule(times=2))) as served:
        got = attempt(lambda got: asyncio.run(talk(got)))
    assert (got.error, got.text, got.finish) == (None, TEXT, "end_turn")
    assert [(e.n, e.retry, e.status) for e in served.calls] == [(1, 0, 529), (2, 1, 529), (3, 2, 200), (4, 0, 200)]


PLAIN = b"""{ "id": "msg_9", "type": "message", "role": "assistant", "model": "claude-sonnet-4-8-20250929",
 "content": [ {"type": "text", "text": "Ol\\u00e9", "citations": null} ], "stop_reason": "end_turn",
 "stop_sequence": null, "usage": {"input_tokens": 1000, "output_tokens": 200, "service_tier": "standard"},
 "unknown": 1.50 }\n"""
STREAM = [
    b'event: message_start\ndata: {"type": "message_start", "message": {"id": "msg_9", "type": "message", "role": '
    b'"assistant", "model": "claude-sonnet-4-8-20250929", "content": [], "stop_reason": null, "stop_sequence": null, '
    b'"usage": {"input_tokens": 1000, "output_tokens": 1}}}\n\n',
    b'event: content_block_start\ndata: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", '
    b'"text": ""}}\n\n',
    b'event: ping\ndata: {"type": "ping"}\n\n',
    b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", '
    b'"text": "Ol\\u00e9"}}\n\n',
    b'event: content_block_stop\ndata: {"type": "content_block_stop", "index": 0}\n\n',
    b'event: message_delta\ndata: {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": '
    b'null}, "usage": {"output_tokens": 200}}\n\n',
    b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
]


def test_an_untouched_reply_of_a_provider_passes_byte_for_byte() -> None:
    with provider() as server:
        environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-user"}
        seen = check_passing(server, environ, Messages, "/v1/messages", PLAIN, STREAM)
    keys = [headers.get("x-api-key") or headers["authorization"] for _, headers, _ in seen]
    assert keys == ["Bearer sk-agent", "sk-user"] * 2  # the agent's own, or the user's where the agent has none
    assert "anthropic-version" in seen[0][1]
