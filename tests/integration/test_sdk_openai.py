"""OpenAI's own library through the gateway: Chat Completions and Responses, plain, streamed and with tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import openai
import pytest
from gateway_kit import SCRIPTED, TEXT, Got, Place, attempt, provider, site_planes
from sdk_conversations import check_conversation, check_healthy, check_passing, check_repeats
from sdk_voices import Chat, Responses
from sdk_weather import (
    BEGUN,
    CUT,
    WEATHERS,
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
VOICES = pytest.mark.parametrize("voice", [Chat, Responses])


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with site_planes(SCRIPTED) as found:
        yield found


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library waits less between its attempts where nobody tells it how long."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.005)


FAILING: Wants = {
    "timeout": fails(openai.APIConnectionError, 3),
    "timeout, the client's": fails(openai.APITimeoutError, 3),
    "slow_tokens, the client's": fails(openai.APITimeoutError, 3),
    "rate_limit": fails(openai.RateLimitError, 3, "429"),
    "rate_limit, retry-after": fails(openai.RateLimitError, 3, "429"),
    "quota": fails(openai.RateLimitError, 3, "exceeded your current quota"),
    "overloaded": fails(openai.InternalServerError, 3, "503"),
    "server_error": fails(openai.InternalServerError, 3, "500"),
    "server_error, html": fails(openai.InternalServerError, 3, "502"),
    "context_length": fails(openai.BadRequestError, 1, "maximum context length"),
    "stream_cut": (fails(openai.APIConnectionError, 3), fails(openai.APIConnectionError, 1, text=CUT)),
}
CHAT: Wants = (
    FAILING
    | drifts("stop", Chat.smaller)
    | {
        "rate_limit, heals": Want("stop", requests=3),
        "truncated": Want("length", CUT, usage=(1000, 4)),
        "truncated, silent": Want("stop", CUT, usage=(1000, 4)),
        "empty content": Want("stop", ""),
        "empty choices": (Want(None, "", lacks="choices"), Want(None, "", hollow=1)),
        "empty message": Want("stop", "", lacks="message"),
        "garbage": Want("stop", nonsense),
        "overloaded, in stream": (
            fails(openai.InternalServerError, 3, "503"),
            fails(openai.APIError, 1, "currently overloaded", BEGUN),
        ),
        "slow_tokens": Want("stop"),
        "empty_choices": (Want(None, "", lacks="choices"), Want("stop", hollow=1)),
        "content_filter": Want("content_filter", ""),
        "malformed, not json": Want("tool_calls", "", unreadable),
        "malformed, not object": Want("tool_calls", "", no_object),
        "unknown_tool": Want("tool_calls", "", invented),
        "wrong_args": Want("tool_calls", "", incomplete),
        "odd_chunks": (Want("stop", effect="no_effect"), Want("stop")),
    }
)
RESPONSES: Wants = (
    FAILING
    | drifts("completed", Responses.smaller)
    | {
        "rate_limit, heals": Want("completed", requests=3),
        "truncated": Want("max_output_tokens", CUT, usage=(1000, 4)),
        "truncated, silent": Want("completed", CUT, usage=(1000, 4)),
        "empty content": Want("completed", ""),
        "empty choices": Want("completed", "", lacks="choices"),
        "empty message": Want("completed", "", lacks="message"),
        "garbage": Want("completed", nonsense),
        "overloaded, in stream": (
            fails(openai.InternalServerError, 3, "503"),
            Want(
                "server_error", BEGUN, usage=None, lacks="choices", failed=True
            ),  # `response.failed` is an event like any
        ),
        "slow_tokens": Want("completed"),
        "empty_choices": (Want("completed", "", lacks="choices"), Want("completed", hollow=1)),
        "content_filter": Want("content_filter", "", lacks="choices"),
        "malformed, not json": Want("completed", "", unreadable),
        "malformed, not object": Want("completed", "", no_object),
        "unknown_tool": Want("completed", "", invented),
        "wrong_args": Want("completed", "", incomplete),
        "odd_chunks": (Want("completed", effect="no_effect"), Want("completed", hollow=1)),
    }
)


@pytest.mark.parametrize(("name", "how"), cases(CHAT))
def test_a_fault_is_met_by_the_chat_client_as_in_production(place: Place, name: str, how: str) -> None:
    check(place, Chat, name, how, CHAT)


@pytest.mark.parametrize(("name", "how"), cases(RESPONSES))
def test_a_fault_is_met_by_the_responses_client_as_in_production(place: Place, name: str, how: str) -> None:
    check(place, Responses, name, how, RESPONSES)


@HOW
@VOICES
def test_a_healthy_call_is_read_right_and_costs_what_it_costs(place: Place, voice: type[Chat], how: str) -> None:
    check_healthy(place, voice, how, "stop" if voice is Chat else "completed")


@HOW
@VOICES
def test_a_conversation_with_a_tool(place: Place, voice: type[Chat], how: str) -> None:
    check_conversation(place, voice, how)


@VOICES
def test_repeat_tool_call_asks_again_whatever_came_of_it(place: Place, voice: type[Chat]) -> None:
    check_repeats(place, voice)


def test_the_environment_alone_leads_the_library_here(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in place.address.environ.items():
        monkeypatch.setenv(name, value)
    with place.sail() as served, openai.OpenAI() as client:
        reply = client.responses.create(model="gpt-4o", input="How did ACME do?")
        names = [model.id for model in client.models.list()]
        vector = client.embeddings.create(model="text-embedding-3-small", input="ACME").data[0].embedding
    assert reply.output_text == TEXT
    assert (names, len(vector) > 0) == (["scripted"], True)
    assert [e.n for e in served.calls] == [1, 0]  # an embedding is billed, but no completion; a list is neither
    assert served.context.troubles == []


def test_the_async_client_meets_the_same(place: Place) -> None:
    async def talk(got: Got) -> None:
        base, key = place.address.environ["OPENAI_BASE_URL"], "sk-agent"
        async with openai.AsyncOpenAI(base_url=base, api_key=key, timeout=10) as client:
            ask = {"model": "gpt-4o", "messages": [{"role": "user", "content": "How did ACME do?"}]}
            async for chunk in await client.chat.completions.create(**ask, stream=True):
                got.text += chunk.choices[0].delta.content or ""
            reply = await client.responses.create(model="gpt-4o", input="How did ACME do?")
            got.finish = reply.output_text

    with place.sail(Injection("llm", "*", "rate_limit", {"retry_after_s": None}, Schedule(times=2))) as served:
        got = attempt(lambda got: asyncio.run(talk(got)))
    assert (got.error, got.text, got.finish) == (None, TEXT, TEXT)
    assert [(e.n, e.retry, e.status) for e in served.calls] == [(1, 0, 429), (2, 1, 429), (3, 2, 200), (4, 0, 200)]


PLAIN = {
    "chat": b"""{ "id": "chatcmpl-9", "object": "chat.completion", "created": 1700000000, "model": "gpt-4o-2024-08-06",
 "choices": [ {"index": 0, "message": {"role": "assistant", "content": "Ol\\u00e9", "refusal": null, "odd": [1.50]},
  "logprobs": null, "finish_reason": "stop"} ], "usage": {"prompt_tokens": 1000, "completion_tokens": 200,
  "total_tokens": 1200}, "unknown": {"b": 1, "a": 2} }\n""",
    "responses": b"""{ "id": "resp_9", "object": "response", "created_at": 1700000000, "status": "completed",
 "model": "gpt-4o-2024-08-06", "error": null, "incomplete_details": null, "output": [ {"id": "msg_9", "type": "message",
  "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "Ol\\u00e9",
  "annotations": []}]} ], "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
 "usage": {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 200,
  "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1200}, "unknown": 1.50 }\n""",
}


def _chunk(choices: str, more: str = "") -> bytes:
    head = '"id":"chatcmpl-9","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-2024-08-06"'
    return f'data: {{{head},"choices":[{choices}]{more}}}\n\n'.encode()


STREAM = {
    "chat": [
        _chunk('{"index":0,"delta":{"role":"assistant","content":"Ol"},"finish_reason":null}'),
        b": a comment\n\n",
        _chunk('{"index":0,"delta":{"content":"\\u00e9"},"finish_reason":null}'),
        _chunk('{"index":0,"delta":{},"finish_reason":"stop"}'),
        _chunk("", ',"usage":{"prompt_tokens":1000,"completion_tokens":200,"total_tokens":1200}'),
        b"data: [DONE]\n\n",
    ],
    "responses": [
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"m","output_index":0,'
        b'"content_index":0,"delta":"Ol\\u00e9","logprobs":[],"sequence_number":1}\n\n',
        b'event: response.completed\ndata: {"type":"response.completed","sequence_number":2,"response":'
        + json.dumps(json.loads(PLAIN["responses"])).encode()
        + b"}\n\n",
    ],
}


@VOICES
def test_an_untouched_reply_of_a_provider_passes_byte_for_byte(voice: type[Chat]) -> None:
    name, path = ("chat", "/chat/completions") if voice is Chat else ("responses", "/responses")
    with provider() as server:
        environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-user"}
        seen = check_passing(server, environ, voice, path, PLAIN[name], STREAM[name])
    keys = ["Bearer sk-agent", "Bearer sk-user"] * 2  # the agent's own, or the user's where the agent has none
    assert [(where, headers["authorization"]) for where, headers, _ in seen] == [(f"/v1{path}", key) for key in keys]


def test_every_fault_of_the_model_is_in_the_table() -> None:
    from holdfast import plugins

    named = {weather.mode for weather in WEATHERS.values()} | {"repeat_tool_call"}
    assert named == set(plugins.names("faults.llm"))
