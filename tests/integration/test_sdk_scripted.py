"""Settings of the providers' own libraries on a scripted model: served, or said to be what the script cannot give.

Whatever a client asks for, it never meets a reply that breaks it and is then taken for the agent's own failure.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import gateway_kit
import ollama
import openai
import pydantic
import pytest
from gateway_kit import SCRIPTED, Place, site_planes
from sdk_voices import genai

MODEL = """
replies:
  - {match: {prompt: record}, text: '{"company": "ACME", "revenue": 42}'}
  - {match: {prompt: another record}, text: '{"name": "ACME"}'}
  - {match: {prompt: shell}, tool_calls: [{name: shell, arguments: {input: ls}}]}
  - {match: {prompt: cut}, text: '{"company": "AC', finish: length}
  - {match: {prompt: call}, tool_calls: [{name: forecast, arguments: {city: Ulm}}]}
  - {text: A plain text.}
"""
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTION = {"name": "forecast", "parameters": SCHEMA}
CHAT_TOOL = {"type": "function", "function": FUNCTION}
RESPONSES_TOOL = {"type": "function", **FUNCTION, "strict": False}
GEMINI_TOOL = {"function_declarations": [{"name": "forecast"}]}
ANY = {"function_calling_config": {"mode": "ANY"}}


class Record(pydantic.BaseModel):
    """What a client wants its reply to be."""

    company: str
    revenue: int


class Clients:
    """The four libraries, led to the gateway."""

    def __init__(self, environ: Any, timeout_s: float) -> None:
        openai_url, anthropic_url = environ["OPENAI_BASE_URL"], environ["ANTHROPIC_BASE_URL"]
        self.openai = openai.OpenAI(base_url=openai_url, api_key="sk", max_retries=0, timeout=timeout_s)
        self.anthropic = anthropic.Anthropic(base_url=anthropic_url, api_key="sk", max_retries=0, timeout=timeout_s)
        self.google = genai.Client(api_key="k", http_options={"base_url": environ["GOOGLE_GEMINI_BASE_URL"]})
        self.ollama = ollama.Client(host=environ["OLLAMA_HOST"])

    def close(self) -> None:
        for client in (self.openai, self.anthropic, self.google, self.ollama):
            client.close()

    def chat(self, prompt: str = "hello", **how: Any) -> Any:
        return self.openai.chat.completions.create(model="gpt-4o", messages=said(prompt), **how)

    def parsed(self, prompt: str) -> Any:
        parse = self.openai.chat.completions.parse
        return parse(model="gpt-4o", messages=said(prompt), response_format=Record).choices[0].message.parsed

    def chat_helper(self, **how: Any) -> Any:
        with self.openai.chat.completions.stream(model="gpt-4o", messages=said("call"), **how) as events:
            for _ in events:
                pass
            return events.get_final_completion()

    def responses(self, prompt: str = "hello", **how: Any) -> Any:
        return self.openai.responses.create(model="gpt-4o", input=prompt, **how)

    def messages(self, prompt: str = "hello", **how: Any) -> Any:
        return self.anthropic.messages.create(model="claude-x", max_tokens=9, messages=said(prompt), **how)

    def gemini(self, prompt: str = "hello", **how: Any) -> Any:
        return self.google.models.generate_content(model="gemini-2.5-flash", contents=prompt, config=how)

    def llama(self, prompt: str = "hello", **how: Any) -> Any:
        return self.ollama.chat("qwen3", said(prompt), **how)


def said(prompt: str) -> Any:
    return [{"role": "user", "content": prompt}]


def choices(chunks: Any) -> dict[int, str]:
    """The text of each choice of a stream."""
    texts: dict[int, str] = {}
    for choice in [choice for chunk in chunks for choice in chunk.choices]:
        texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
    return texts


def candidates(c: Clients) -> set[int]:
    chunks = c.google.models.generate_content_stream(
        model="gemini-2.5-flash", contents="hello", config={"candidate_count": 2}
    )
    return {one.index or 0 for chunk in chunks for one in chunk.candidates or []}


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gateway_kit, "MODEL", MODEL)
        with site_planes(SCRIPTED) as found:
            yield found


def answered(place: Place, ask: Callable[[Clients], Any]) -> tuple[Any, list[str]]:
    """What a client made of it, or its exception; and what the trial calls an error of the harness."""
    with place.sail() as trial:
        try:
            found = ask(place.client(Clients))
        except Exception as error:
            found = error
    return found, list(trial.context.troubles)


SERVED: dict[str, tuple[Callable[[Clients], Any], Any]] = {
    "chat tier": (lambda c: [c.chat().service_tier, c.chat(service_tier="flex").service_tier], ["default", "flex"]),
    "chat n": (lambda c: [one.index for one in c.chat(n=3).choices], [0, 1, 2]),
    "chat n, stream": (lambda c: choices(c.chat(n=2, stream=True)), dict.fromkeys((0, 1), "A plain text.")),
    "chat n, calls": (
        lambda c: [one.message.tool_calls[0].function.name for one in c.chat_helper(n=2, tools=[CHAT_TOOL]).choices],
        ["forecast", "forecast"],
    ),
    "chat usage": (lambda c: c.chat().usage.completion_tokens_details.reasoning_tokens, 0),
    "chat metadata": (lambda c: c.chat(store=True, metadata={"a": "b"}).metadata, {"a": "b"}),
    "chat schema": (lambda c: c.parsed("record").company, "ACME"),
    "chat must call": (lambda c: c.chat("call", tools=[CHAT_TOOL], tool_choice="required").choices[0].finish_reason,
                       "tool_calls"),
    "chat cut": (lambda c: c.chat("cut", response_format={"type": "json_schema", "json_schema": {
        "name": "r", "strict": True, "schema": Record.model_json_schema()}}).choices[0].finish_reason, "length"),
    "responses tier": (lambda c: c.responses(service_tier="priority").service_tier, "priority"),
    "responses settings": (
        lambda c: (r := c.responses(metadata={"a": "b"}, instructions="be", top_p=0.5, tools=[RESPONSES_TOOL]))
        and (r.metadata, r.instructions, r.top_p, r.tools[0].name, r.text.format.type),
        ({"a": "b"}, "be", 0.5, "forecast", "text"),
    ),
    "responses conversation": (lambda c: c.responses(conversation="conv_1").conversation.id, "conv_1"),
    "responses background": (lambda c: c.responses(background=True).status, "completed"),
    "messages usage": (lambda c: (u := c.messages().usage) and (u.service_tier, u.cache_read_input_tokens,
                                                                u.cache_creation.ephemeral_1h_input_tokens),
                       ("standard", 0, 0)),
    "messages count": (
        lambda c: c.anthropic.messages.count_tokens(model="claude-x", messages=said("hello")).input_tokens > 0, True),
    "gemini candidates": (lambda c: len(c.gemini(candidate_count=2).candidates), 2),
    "gemini candidates, stream": (candidates, {0, 1}),
    "gemini schema": (lambda c: c.gemini("record", response_mime_type="application/json",
                                         response_schema=Record).parsed.revenue, 42),
    "gemini count": (lambda c: c.google.models.count_tokens(model="gemini-2.5-flash", contents="hi").total_tokens > 0,
                     True),
    "ollama durations": (lambda c: c.llama().eval_duration > 0 and list(c.llama(stream=True))[-1].eval_duration > 0,
                         True),
    "ollama show": (lambda c: c.ollama.show("qwen3").capabilities, ["completion", "tools"]),
    "models": (lambda c: [c.openai.models.retrieve("gpt-4o").id, c.anthropic.models.retrieve("claude-x").id],
               ["gpt-4o", "claude-x"]),
}  # fmt: skip
UNSERVED: dict[str, Callable[[Clients], Any]] = {
    "chat logprobs": lambda c: c.chat(logprobs=True, top_logprobs=2),
    "chat logprobs, stream": lambda c: list(c.chat(logprobs=True, stream=True)),
    "chat audio": lambda c: c.chat(modalities=["text", "audio"], audio={"voice": "alloy", "format": "wav"}),
    "chat functions": lambda c: c.chat("call", functions=[FUNCTION]),
    "chat custom tool": lambda c: c.chat("shell", tools=[{"type": "custom", "custom": {"name": "shell"}}]),
    "chat must call": lambda c: c.chat(tools=[CHAT_TOOL], tool_choice="required"),
    "chat must call this": lambda c: c.chat(
        tools=[CHAT_TOOL], tool_choice={"type": "function", "function": {"name": "forecast"}}
    ),
    "chat schema, text": lambda c: c.parsed("hello"),
    "chat schema, another": lambda c: c.parsed("another record"),
    "responses logprobs": lambda c: c.responses(include=["message.output_text.logprobs"]),
    "responses top_logprobs": lambda c: c.responses(top_logprobs=2),
    "responses must call": lambda c: c.responses(tools=[RESPONSES_TOOL], tool_choice="required"),
    "responses custom tool": lambda c: c.responses("shell", tools=[{"type": "custom", "name": "shell"}]),
    "responses schema": lambda c: c.openai.responses.parse(model="gpt-4o", input="hello", text_format=Record),
    "responses fetched": lambda c: c.openai.responses.retrieve("resp_1"),
    "responses cancelled": lambda c: c.openai.responses.cancel("resp_1"),
    "messages must call": lambda c: c.messages(
        tools=[{"name": "forecast", "input_schema": SCHEMA}], tool_choice={"type": "any"}
    ),
    "messages schema": lambda c: c.anthropic.messages.parse(
        model="claude-x", max_tokens=9, messages=said("hello"), output_format=Record
    ),
    "gemini logprobs": lambda c: c.gemini(response_logprobs=True, logprobs=2),
    "gemini image": lambda c: c.gemini(response_modalities=["TEXT", "IMAGE"]),
    "gemini must call": lambda c: c.gemini(tools=[GEMINI_TOOL], tool_config=ANY),
    "gemini schema": lambda c: c.gemini(response_mime_type="application/json", response_schema=Record),
    "ollama logprobs": lambda c: c.llama(logprobs=True),
    "ollama schema": lambda c: c.llama(format=Record.model_json_schema()),
    "ollama image": lambda c: c.ollama.generate("qwen3", "hello", width=10, height=10),
    "old completions": lambda c: c.openai.completions.create(model="gpt-3.5-turbo-instruct", prompt="hello"),
    "moderation": lambda c: c.openai.moderations.create(input="x"),
    "speech": lambda c: c.openai.audio.speech.create(model="tts-1", voice="alloy", input="x"),
    "transcription, a form": lambda c: c.openai.audio.transcriptions.create(model="whisper-1", file=("a.wav", b"RIFF")),
    "file, a form": lambda c: c.openai.files.create(file=("a.jsonl", b"{}"), purpose="batch"),
    "image, a form": lambda c: c.openai.images.edit(model="gpt-image-1", image=("a.png", b"x"), prompt="p"),
    "file of Anthropic, a form": lambda c: c.anthropic.beta.files.upload(file=("a.txt", b"x")),
    "file of Google": lambda c: c.google.files.upload(file=io.BytesIO(b"x"), config={"mime_type": "text/plain"}),
    "cache of Google": lambda c: c.google.caches.create(model="gemini-2.5-flash", config={"contents": ["hello"]}),
}


@pytest.mark.parametrize("name", SERVED)
def test_what_a_client_expects_of_every_reply_is_in_a_scripted_one(place: Place, name: str) -> None:
    ask, expected = SERVED[name]
    assert answered(place, ask) == (expected, [])


@pytest.mark.parametrize("name", UNSERVED)
def test_what_a_script_cannot_give_is_an_error_that_names_the_script(place: Place, name: str) -> None:
    found, troubles = answered(place, UNSERVED[name])
    assert isinstance(found, Exception)
    assert troubles
    assert all(trouble.startswith("script model.yaml") for trouble in troubles)


def test_only_json_that_no_server_could_read_is_the_agents_own_mistake(place: Place) -> None:
    def posted(body: bytes, kind: str = "application/json") -> tuple[Any, list[str]]:
        headers = {"content-type": kind}
        return answered(
            place, lambda c: c.openai._client.post("chat/completions", content=body, headers=headers).status_code
        )

    deep = b'{"model": "m", "messages": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert [(code, bool(troubles)) for code, troubles in map(posted, (b"{", b"[]", deep, b""))] == [
        (400, False), (400, False), (404, True), (400, False),
    ]  # fmt: skip
    assert posted(b"--x--", "multipart/form-data; boundary=x")[1]
