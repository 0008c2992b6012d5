"""What answers behind the gateway: nothing, a provider that fails, a recording, a server that speaks another format."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import ollama
import openai
import pytest
from gateway_kit import ARGUMENTS, CUT_OFF, FOUND, SCRIPTED, TEXT, Got, Place, provider, site_planes
from sdk_conversations import HOWS, say, use
from sdk_voices import VOICES, Chat, Messages, genai
from sdk_weather import CUT

from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection

pytestmark = pytest.mark.usefixtures("quick_retries")
JSON = "application/json"
EVENTS = "text/event-stream"


@pytest.fixture
def closed() -> Iterator[str]:
    """An address that takes no connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


REFUSED: dict[str, tuple[type[Exception], type[Exception]]] = {
    "chat": (openai.BadRequestError, openai.InternalServerError),
    "responses": (openai.BadRequestError, openai.InternalServerError),
    "anthropic": (anthropic.BadRequestError, anthropic.InternalServerError),
    "google": (genai.errors.ClientError, genai.errors.ServerError),
    "ollama": (ollama.ResponseError, ollama.ResponseError),
    "generate": (ollama.ResponseError, ollama.ResponseError),
}
"""What each library raises where nothing is there to ask, and where what is there gives no answer."""
BASES = {"chat": "OPENAI_BASE_URL", "responses": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
BASES |= {"google": "GOOGLE_GEMINI_BASE_URL", "ollama": "OLLAMA_HOST", "generate": "OLLAMA_HOST"}


@pytest.fixture(scope="module")
def nowhere() -> Iterator[Place]:
    with site_planes() as found:
        yield found


@pytest.mark.parametrize("voice", [name for name in VOICES if BASES[name] != "OLLAMA_HOST"])
def test_without_key_script_and_recording_the_error_names_the_three_ways(nowhere: Place, voice: str) -> None:
    with nowhere.sail(Injection("llm", "*", "garbage")) as served:
        got = say(nowhere.client(VOICES[voice]), [], "How did ACME do?")
    assert type(got.error) is REFUSED[voice][0]
    (trouble,) = served.context.troubles
    for text in (str(got.error), trouble):
        assert all(way in text for way in (" key ", "script: model.yaml", "--replay FILE"))
    assert [(e.retry, e.error_type) for e in served.calls] == [(0, "upstream")]  # asked once: it is of no use to retry
    assert [one.effect for one in served.context.ledger] == ["no_effect"]


@pytest.mark.parametrize("voice", VOICES)
def test_an_upstream_that_is_down_is_an_error_and_no_fault(closed: str, voice: str) -> None:
    with site_planes(environ={BASES[voice]: closed}) as place, place.sail() as served:
        got = say(place.client(VOICES[voice]), [], "How did ACME do?")
    assert type(got.error) is REFUSED[voice][1]
    (trouble,) = served.context.troubles
    assert f" {closed} " in trouble
    assert {(e.status, e.error_type, e.fault) for e in served.calls} == {(502, "upstream", "")}
    assert served.met == []


@pytest.mark.parametrize(
    ("status", "raised", "requests", "told"),
    [
        (400, openai.BadRequestError, 1, False),  # the agent's own doing
        (401, openai.AuthenticationError, 1, True),
        (429, openai.RateLimitError, 3, True),
        (500, openai.InternalServerError, 3, True),
    ],
)
@pytest.mark.parametrize("weather", ["calm", "odd_chunks"])
def test_an_error_of_the_provider_passes_and_is_told_apart(
    status: int, raised: type[Exception], requests: int, told: bool, weather: str
) -> None:
    body = json.dumps({"error": {"message": "so it is", "type": "t", "param": None, "code": "c"}}).encode()
    injections = [Injection("llm", "*", weather)] if weather != "calm" else []
    with (
        provider((status, JSON, [body])) as server,
        site_planes(environ={"OPENAI_BASE_URL": server.url}) as place,
        place.sail(*injections) as served,
    ):
        got = say(place.client(Chat), [], "How did ACME do?")
    assert (type(got.error), len(server.seen)) == (raised, requests)
    assert "so it is" in str(got.error)
    assert [(e.status, e.retry, e.failed) for e in served.calls] == [(status, n, True) for n in range(requests)]
    expected = f"{server.url} answered {status}, which was not injected: {body.decode()}"
    assert served.context.troubles == ([expected] if told else [])


@pytest.mark.parametrize("weather", ["calm", "slow_tokens"])
def test_an_error_inside_a_providers_stream_is_told_apart(weather: str) -> None:
    started = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    started |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    events = [
        ("message_start", {"type": "message_start", "message": started}),
        ("error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ]
    chunks = [f"event: {name}\ndata: {json.dumps(data)}\n\n".encode() for name, data in events]
    slow = Injection("llm", "*", "slow_tokens", {"ttft_ms": 1, "per_token_ms": 0})
    with provider((200, EVENTS, chunks)) as server:
        injections = [slow] if weather != "calm" else []
        with site_planes(environ={"ANTHROPIC_BASE_URL": server.url}) as place, place.sail(*injections) as served:
            got = say(place.client(Messages), [], "How did ACME do?", "streamed")
    assert type(got.error) is anthropic.APIStatusError
    (trouble,) = served.context.troubles
    assert (trouble.startswith(f"{server.url} "), trouble.endswith(": overloaded")) == (True, True)
    assert [e.error_type for e in served.calls] == ["overloaded"]


def test_a_stream_that_the_provider_breaks_off_is_told_apart() -> None:
    torn = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    torn += b'{"content":"Half"},"finish_reason":null}]}\n\n'

    with (
        provider((200, EVENTS, [torn, CUT_OFF])) as server,
        site_planes(environ={"OPENAI_BASE_URL": server.url}) as place,
        place.sail() as served,
    ):
        got = say(place.client(Chat), [], "How did ACME do?", "streamed")
    assert (type(got.error), got.text) == (openai.APIConnectionError, "Half")
    (trouble,) = served.context.troubles
    assert f" {server.url} " in trouble
    assert isinstance(got.error.__cause__, httpx2.RemoteProtocolError)


def test_a_stream_that_ends_early_and_in_order_raises_nothing() -> None:
    half = _chunks({"content": "Half an"}, finish="stop")[:1]
    with (
        provider((200, EVENTS, [*half, b": nothing more\n\n"])) as server,
        site_planes(environ={"OPENAI_BASE_URL": server.url}) as place,
        place.sail() as served,
    ):
        got = say(place.client(Chat), [], "How did ACME do?", "streamed")
    assert (got.error, got.text, got.finish, len(server.seen)) == (None, "Half an", None, 1)
    assert [(e.output, e.error_type, e.cost) for e in served.calls] == [("Half an", "", None)]
    assert served.context.troubles == []


# -- recordings -------------------------------------------------------------------------------------
def _talk(place: Place, voice: str) -> list[Got]:
    """A bit of everything that the library can do."""
    client, tools = place.client(VOICES[voice]), voice != "generate"
    told = [say(client, [], "How did ACME do?", how) for how in HOWS]
    for how in HOWS if tools else ():
        history: list[Any] = []
        asked = say(client, history, "Will it rain?", how, tools=True)
        told += [asked, use(client, history, asked, [FOUND], how)]
    return told


@pytest.mark.parametrize("voice", VOICES)
def test_what_was_recorded_is_replayed_without_the_model(tmp_path: Path, voice: str) -> None:
    tape = tmp_path / "tape.jsonl"
    with site_planes(SCRIPTED, record=tape) as place, place.sail() as first:
        recorded = _talk(place, voice)
    with site_planes(replay=tape) as place, place.sail() as second:
        replayed = _talk(place, voice)
        unknown = say(place.client(VOICES[voice]), [], "Something else?")
    assert recorded == replayed
    assert all(got.error is None for got in recorded)
    assert [e.cost for e in first.calls] == [e.cost for e in second.calls[:-1]]
    assert unknown.error is not None
    (trouble,) = second.context.troubles
    assert "tape.jsonl " in trouble


def test_a_fault_is_met_on_a_replayed_reply_and_leaves_none_on_the_recording(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    cut = Injection("llm", "*", "truncated_response", {"max_tokens": 4})
    with site_planes(SCRIPTED, record=tape) as place, place.sail(cut):
        assert say(place.client(Messages), [], "How did ACME do?").finish == "max_tokens"
    with site_planes(replay=tape) as place:
        with place.sail():
            assert say(place.client(Messages), [], "How did ACME do?").text == TEXT
        with place.sail(cut) as served:
            assert say(place.client(Messages), [], "How did ACME do?").text == CUT
    assert [mode for *_, mode, _ in served.met] == ["truncated_response"]


def test_no_key_is_in_a_recording_and_a_failure_of_the_provider_neither(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    failed = json.dumps({"error": {"message": "busy", "type": "t", "param": None, "code": "c"}}).encode()
    with provider((500, JSON, [failed]), (200, JSON, [_chat("Hello.")])) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-user-0123456789"}
        with site_planes(environ=environ, record=tape) as place, place.sail():
            got = say(place.client(Chat), [], "How did ACME do?")
    with site_planes(replay=tape) as place, place.sail() as served:
        again = say(place.client(Chat), [], "How did ACME do?")
    assert (got.text, again.text, len(served.calls)) == ("Hello.", "Hello.", 1)
    kept = tape.read_text("utf-8")
    assert "sk-" not in kept
    assert "busy" not in kept
    assert os.stat(tape).st_mode & 0o077 == 0


# -- another format ---------------------------------------------------------------------------------
CALL = {"id": "call_9", "type": "function"}
CALL["function"] = {"name": "forecast", "arguments": json.dumps(ARGUMENTS)}  # type: ignore[assignment]


def _chat(text: str | None, calls: list[Any] | None = None) -> bytes:
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 30, "completion_tokens": 7, "total_tokens": 37}
    body = {"id": "c9", "object": "chat.completion", "created": 1, "model": "local", "choices": [choice]}
    return json.dumps({**body, "usage": usage}).encode()


def _chunks(*deltas: dict[str, Any], finish: str) -> list[bytes]:
    head = {"id": "c9", "object": "chat.completion.chunk", "created": 1, "model": "local"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [{**head, "choices": [choice]} for choice in choices]
    events.append({**head, "choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 7, "total_tokens": 37}})
    return [f"data: {json.dumps(event)}\n\n".encode() for event in events] + [b"data: [DONE]\n\n"]


ANSWERS = {
    "plain": [(200, JSON, [_chat(None, [CALL])]), (200, JSON, [_chat("It is sunny.")])],
    "streamed": [
        (200, EVENTS, _chunks({"role": "assistant", "tool_calls": [{"index": 0, **CALL}]}, finish="tool_calls")),
        (200, EVENTS, _chunks({"content": "It is "}, {"content": "sunny."}, finish="stop")),
    ],
}


@pytest.mark.parametrize("how", HOWS)
def test_a_client_of_anthropics_is_served_by_a_server_that_speaks_openais_format(how: str) -> None:
    history: list[Any] = []
    with provider(*ANSWERS[how]) as server:
        spec = ModelSpec("openai", name="local", base_url=f"{server.url}/v1", api_key="sk-local", input_usd=1000)
        with site_planes({"claude-*": spec}) as place, place.sail() as served:
            asked = say(place.client(Messages), history, "Will it rain?", how, tools=True)
            told = use(place.client(Messages), history, asked, [FOUND], how)
    assert (asked.error, asked.finish, asked.usage) == (None, "tool_use", (30, 7))
    assert [(call.id, call.name, call.read) for call in asked.calls] == [("call_9", "forecast", ARGUMENTS)]
    assert (told.error, told.text, told.finish) == (None, "It is sunny.", "end_turn")
    (path, headers, body) = server.seen[-1]
    assert (path, headers["authorization"], body["model"]) == ("/v1/chat/completions", "Bearer sk-local", "local")
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool"]
    assert json.loads(body["messages"][-1]["content"]) == FOUND
    assert body["tools"][0]["function"]["name"] == "forecast"
    assert [(e.tool, e.cost and e.cost.estimated_usd) for e in served.calls] == [(Messages.model, 0.03)] * 2
    assert [(e.tool, e.n, e.phase) for e in served.tools] == [("forecast", 1, "done")]
    assert served.context.troubles == []


def test_an_error_of_such_a_server_has_the_shape_that_the_client_knows() -> None:
    body = json.dumps({"error": {"message": "slow down", "type": "requests", "param": None, "code": "x"}}).encode()
    with provider((429, JSON, [body])) as server:
        spec = ModelSpec("openai", name="local", base_url=f"{server.url}/v1")
        with site_planes({"*": spec}) as place, place.sail() as served:
            got = say(place.client(Messages), [], "Will it rain?")
    assert type(got.error) is anthropic.RateLimitError
    assert "slow down" in str(got.error)
    assert [e.status for e in served.calls] == [429] * 3
    assert len(served.context.troubles) == 1


@pytest.mark.parametrize("how", HOWS)
def test_a_fault_is_met_in_the_clients_own_format_whoever_answers(how: str) -> None:
    with provider(ANSWERS[how][1]) as server:
        spec = ModelSpec("openai", name="local", base_url=f"{server.url}/v1")
        with site_planes({"*": spec}) as place, place.sail(Injection("llm", "*", "content_filter")) as served:
            got = say(place.client(Messages), [], "Will it rain?", how)
    assert (got.error, got.text, got.finish) == (None, "", "refusal")
    assert [one.would for one in served.context.ledger] == ["It is sunny."]
