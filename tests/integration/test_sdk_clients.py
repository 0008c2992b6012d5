"""The providers' own libraries through the gateway: plain, streamed and with tools, under every fault of the model."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import ollama
import openai
import pytest
from gateway_kit import TEXT, Got, Place, attempt, provider
from sdk_conversations import HOWS, check_conversation, check_healthy, check_passing, check_repeats
from sdk_replies import REPLIES
from sdk_voices import TALKERS, VOICES, genai
from sdk_wants import WANTS
from sdk_weather import WEATHERS, check

from holdfast import plugins
from holdfast.model.scenario import Injection, Schedule

pytestmark = pytest.mark.usefixtures("quick_retries")
HOW = pytest.mark.parametrize("how", HOWS)
EVERY_VOICE = pytest.mark.parametrize("voice", VOICES)
EVERY_TALKER = pytest.mark.parametrize("voice", TALKERS)
STOPS = {"responses": "completed", "anthropic": "end_turn", "google": "STOP"}
"""The word for a reply that is complete; the others say `stop`."""
ITS_OWN_WARNING = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")


@pytest.mark.parametrize("name", WEATHERS)
@HOW
@EVERY_VOICE
def test_the_library_meets_a_fault_as_in_production(place: Place, voice: str, how: str, name: str) -> None:
    check(place, VOICES[voice], name, how, WANTS[voice])


def test_every_fault_of_the_model_is_in_the_tables() -> None:
    modes = {weather.mode for weather in WEATHERS.values()} | {"repeat_tool_call"}
    assert modes == set(plugins.list_names("faults.llm"))
    assert WANTS.keys() == VOICES.keys()
    assert all(wants.keys() == WEATHERS.keys() for wants in WANTS.values())


@HOW
@EVERY_VOICE
def test_a_healthy_call_is_read_right_and_costs_what_it_costs(place: Place, voice: str, how: str) -> None:
    check_healthy(place, VOICES[voice], how, STOPS.get(voice, "stop"))


@HOW
@EVERY_TALKER
def test_a_conversation_with_a_tool(place: Place, voice: str, how: str) -> None:
    check_conversation(place, VOICES[voice], how)


@EVERY_TALKER
def test_repeat_tool_call_repeats_the_call_whatever_its_result(place: Place, voice: str) -> None:
    check_repeats(place, VOICES[voice])


@EVERY_VOICE
def test_an_unchanged_reply_of_a_provider_passes_byte_for_byte(voice: str) -> None:
    path, environ, plain, stream = REPLIES[voice]
    with provider() as server:
        environ = {name: value.format(url=server.url) for name, value in environ.items()}
        requests = check_passing(server, environ, VOICES[voice], path, plain, stream)
    names = ("x-api-key", "x-goog-api-key", "authorization")
    keys = [next((headers[name] for name in names if name in headers), "") for _, headers, _ in requests]
    bare = [key.removeprefix("Bearer ") for key in keys]
    # The agent's own key, or the user's where the agent has none. Ollama knows no keys.
    assert bare == ([""] * 4 if "OLLAMA_HOST" in environ else ["sk-agent", "sk-user"] * 2)
    assert ("anthropic-version" in requests[0][1]) == (voice == "anthropic")


# -- the environment alone ----------------------------------------------------------------------------
@pytest.fixture
def _environ(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in place.address.environ.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_environ")
def test_the_environment_alone_points_openai_at_the_gateway(place: Place) -> None:
    with place.sail() as served, openai.OpenAI() as client:
        reply = client.responses.create(model="gpt-4o", input="How did ACME do?")
        names = [model.id for model in client.models.list()]
        vector = client.embeddings.create(model="text-embedding-3-small", input="ACME").data[0].embedding
    assert reply.output_text == TEXT
    assert (names, len(vector) > 0) == (["scripted"], True)
    assert [e.n for e in served.calls] == [1, 0]  # an embedding is billed but is not a completion; a list is neither
    assert served.context.troubles == []


@pytest.mark.usefixtures("_environ")
def test_the_environment_alone_points_anthropic_at_the_gateway(place: Place) -> None:
    ask = {"model": "claude-sonnet-4-8", "max_tokens": 500, "messages": [{"role": "user", "content": "How did it go?"}]}
    with place.sail() as served, anthropic.Anthropic() as client, client.messages.stream(**ask) as stream:
        final = stream.get_final_message()
    assert (final.content[0].text, final.usage.input_tokens) == (TEXT, 1000)
    assert [(e.tool, e.error_type) for e in served.calls] == [("claude-sonnet-4-8", "")]


@pytest.mark.usefixtures("_environ")
def test_the_environment_alone_points_google_at_the_gateway(place: Place) -> None:
    with place.sail() as served, genai.Client() as client:
        reply = client.models.generate_content(model="gemini-2.5-flash", contents="How did ACME do?")
    assert reply.text == TEXT
    assert [(e.tool, e.error_type) for e in served.calls] == [("gemini-2.5-flash", "")]


@pytest.mark.usefixtures("_environ")
def test_the_environment_alone_points_ollama_at_the_gateway(place: Place) -> None:
    with place.sail() as served, ollama.Client() as client:
        reply = client.chat("llama3.1:70b", [{"role": "user", "content": "How did ACME do?"}])
        models = client.list().models
    assert (reply.message.content, len(models)) == (TEXT, 1)
    assert [(e.event_type, e.error_type) for e in served.context.trace] == [("llm_call", ""), ("http_call", "")]


# -- asynchronous clients ------------------------------------------------------------------------------


def _google_async(place: Place, how: str) -> Any:
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


@ITS_OWN_WARNING
def test_googles_async_client_repeats_a_lost_connection_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("google.genai._api_client.random.randint", lambda low, high: -1)  # its wait: 1 to 10 s
    with place.sail(Injection("llm", "*", "timeout", {"delay_ms": 10}, Schedule(times=1))) as served:
        got = _google_async(place, "plain")
    assert (got.error, got.text) == (None, TEXT)
    assert [(e.n, e.retry, e.error_type) for e in served.calls] == [(1, 0, "timeout"), (2, 1, "")]
