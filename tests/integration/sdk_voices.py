"""The providers' own client libraries behind one shape: a conversation, asked plainly or as a stream."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import anthropic
import ollama
import openai
from gateway_kit import Asking, Got

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
ABOUT = {"name": "forecast", "description": "The weather of the next days."}

History = list[Any]


def quietly(name: str) -> Any:
    """A library whose own code warns as it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(name)


genai = quietly("google.genai")


class Chat:
    """OpenAI's Chat Completions."""

    provider: ClassVar[str] = "openai"
    model: ClassVar[str] = "gpt-4o"
    smaller: ClassVar[str] = "gpt-4o-mini"
    usd: ClassVar[float | None] = 0.0045
    TOOLS: ClassVar[Any] = [{"type": "function", "function": {**ABOUT, "parameters": SCHEMA}}]

    def __init__(self, environ: Mapping[str, str], timeout_s: float = 10.0) -> None:
        base, key = environ["OPENAI_BASE_URL"], environ.get("OPENAI_API_KEY", "sk-agent")
        self.client = openai.OpenAI(base_url=base, api_key=key, timeout=timeout_s)

    def close(self) -> None:
        self.client.close()

    def asks(self, history: History, *, stream: bool, tools: bool) -> dict[str, Any]:
        options = {"stream_options": {"include_usage": True}} if stream else {}
        given = {"tools": self.TOOLS} if tools else {}
        return {"model": self.model, "messages": history, "stream": stream, **options, **given}

    def plain(self, got: Got, history: History, *, tools: bool = False) -> None:
        self.read(self.client.chat.completions.create(**self.asks(history, stream=False, tools=tools)), got)

    def streamed(self, got: Got, history: History, *, tools: bool = False) -> None:
        with self.client.chat.completions.create(**self.asks(history, stream=True, tools=tools)) as chunks:
            for chunk in chunks:
                self.take(chunk, got)

    def read(self, reply: Any, got: Got) -> None:
        got.model = reply.model
        got.usage = reply.usage and (reply.usage.prompt_tokens, reply.usage.completion_tokens)
        if not reply.choices:
            got.lacks = "choices"
            return
        choice = reply.choices[0]
        got.finish = choice.finish_reason
        if choice.message is None:
            got.lacks = "message"
            return
        got.text = choice.message.content or ""
        got.calls = [Asking(c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls or []]

    def take(self, chunk: Any, got: Got) -> None:
        got.model = chunk.model
        if chunk.usage:
            got.usage = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        elif not chunk.choices:
            got.hollow += 1
        for choice in chunk.choices:
            got.finish = choice.finish_reason or got.finish
            if choice.delta is None:
                got.lacks = "message"
                continue
            got.text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                if call.id:
                    got.calls.append(Asking(call.id, call.function.name, ""))
                got.calls[call.index].arguments += call.function.arguments or ""

    def says(self, history: History, prompt: str) -> None:
        history.append({"role": "user", "content": prompt})

    def answered(self, history: History, got: Got) -> None:
        history.append({"role": "assistant", "content": got.text})

    def did(self, history: History, got: Got, results: list[str]) -> None:
        """What the model asked for, and what came of it."""
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in got.calls
        ]
        history.append({"role": "assistant", "content": got.text or None, "tool_calls": calls})
        for call, result in zip(got.calls, results, strict=True):
            history.append({"role": "tool", "tool_call_id": call.id, "content": result})


class Responses(Chat):
    """OpenAI's Responses."""

    TOOLS: ClassVar[Any] = [{"type": "function", **ABOUT, "parameters": SCHEMA, "strict": False}]

    def asks(self, history: History, *, stream: bool, tools: bool) -> dict[str, Any]:
        given = {"tools": self.TOOLS} if tools else {}
        return {"model": self.model, "input": history, "stream": stream, **given}

    def plain(self, got: Got, history: History, *, tools: bool = False) -> None:
        self.read(self.client.responses.create(**self.asks(history, stream=False, tools=tools)), got)

    def streamed(self, got: Got, history: History, *, tools: bool = False) -> None:
        with self.client.responses.create(**self.asks(history, stream=True, tools=tools)) as events:
            for event in events:
                self.take(event, got)

    def read(self, reply: Any, got: Got) -> None:
        self._ended(reply, got)
        if reply.output is None:
            got.lacks = "message"
            return
        got.lacks = "" if reply.output else "choices"
        got.text = reply.output_text
        for item in reply.output:
            if item.type == "function_call":
                got.calls.append(Asking(item.call_id, item.name, item.arguments))

    def take(self, event: Any, got: Got) -> None:
        if event.type == "response.output_text.delta":
            got.text += event.delta
        elif event.type == "response.output_item.done" and event.item.type == "function_call":
            got.calls.append(Asking(event.item.call_id, event.item.name, event.item.arguments))
        elif event.type in ("response.completed", "response.incomplete", "response.failed"):
            self._ended(event.response, got)
            if event.response.output is None:
                got.lacks = "message"
            elif not event.response.output:
                got.lacks = "choices"
        elif event.type == "response.created":
            got.hollow = -1  # one chunk that says nothing follows in every stream
        elif event.type == "response.in_progress":
            got.hollow += 1

    def _ended(self, reply: Any, got: Got) -> None:
        got.model = reply.model
        reason = reply.incomplete_details and reply.incomplete_details.reason
        got.finish = reply.error.code if reply.error else reason or reply.status
        got.usage = reply.usage and (reply.usage.input_tokens, reply.usage.output_tokens)

    def did(self, history: History, got: Got, results: list[str]) -> None:
        for call, result in zip(got.calls, results, strict=True):
            history += [
                {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments},
                {"type": "function_call_output", "call_id": call.id, "output": result},
            ]


class Messages:
    """Anthropic's Messages."""

    provider: ClassVar[str] = "anthropic"
    model: ClassVar[str] = "claude-sonnet-4-8"
    smaller: ClassVar[str] = "claude-haiku-4-8"
    usd: ClassVar[float | None] = 0.006
    TOOLS: ClassVar[Any] = [{**ABOUT, "input_schema": SCHEMA}]

    def __init__(self, environ: Mapping[str, str], timeout_s: float = 10.0) -> None:
        base, key = environ["ANTHROPIC_BASE_URL"], environ.get("ANTHROPIC_API_KEY", "sk-agent")
        self.client = anthropic.Anthropic(base_url=base, api_key=key, timeout=timeout_s)

    def close(self) -> None:
        self.client.close()

    def asks(self, history: History, *, tools: bool) -> dict[str, Any]:
        given = {"tools": self.TOOLS} if tools else {}
        return {"model": self.model, "max_tokens": 500, "messages": history, **given}

    def plain(self, got: Got, history: History, *, tools: bool = False) -> None:
        self.read(self.client.messages.create(**self.asks(history, tools=tools)), got)

    def streamed(self, got: Got, history: History, *, tools: bool = False) -> None:
        with self.client.messages.create(**self.asks(history, tools=tools), stream=True) as events:
            for event in events:
                self.take(event, got)

    def read(self, reply: Any, got: Got) -> None:
        got.model, got.finish = reply.model, reply.stop_reason
        got.usage = reply.usage and (reply.usage.input_tokens, reply.usage.output_tokens)
        if not reply.content:
            got.lacks = "message" if reply.content is None else "choices"
            return
        got.text = "".join(block.text for block in reply.content if block.type == "text")
        got.calls = [Asking(b.id, b.name, b.input) for b in reply.content if b.type == "tool_use"]

    def take(self, event: Any, got: Got) -> None:
        if event.type == "message_start":
            got.model = event.message.model
            got.usage = (event.message.usage.input_tokens, 0)
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            got.calls.append(Asking(event.content_block.id, event.content_block.name, ""))
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            got.text += event.delta.text
        elif event.type == "content_block_delta":
            got.calls[-1].arguments += event.delta.partial_json
        elif event.type == "message_delta":
            got.finish = event.delta.stop_reason
            got.usage = (got.usage[0] if got.usage else 0, event.usage.output_tokens)

    def says(self, history: History, prompt: str) -> None:
        history.append({"role": "user", "content": prompt})

    def answered(self, history: History, got: Got) -> None:
        history.append({"role": "assistant", "content": got.text or "."})

    def did(self, history: History, got: Got, results: list[str]) -> None:
        used = [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.read} for c in got.calls]
        gave = [
            {"type": "tool_result", "tool_use_id": c.id, "content": text}
            for c, text in zip(got.calls, results, strict=True)
        ]
        history += [{"role": "assistant", "content": used}, {"role": "user", "content": gave}]


class Google:
    """Google's generateContent."""

    provider: ClassVar[str] = "google"
    model: ClassVar[str] = "gemini-2.5-flash"
    smaller: ClassVar[str] = "gemini-2.5-flash-lite"
    usd: ClassVar[float | None] = 0.0008

    def __init__(self, environ: Mapping[str, str], timeout_s: float = 10.0) -> None:
        options = genai.types.HttpOptions(base_url=environ["GOOGLE_GEMINI_BASE_URL"], timeout=int(timeout_s * 1000))
        self.client = genai.Client(api_key=environ.get("GOOGLE_API_KEY", "sk-agent"), http_options=options)

    def close(self) -> None:
        self.client.close()

    def asks(self, history: History, *, tools: bool) -> dict[str, Any]:
        types = genai.types
        declared = [types.Tool(function_declarations=[{**ABOUT, "parameters_json_schema": SCHEMA}])] if tools else None
        return {"model": self.model, "contents": history, "config": types.GenerateContentConfig(tools=declared)}

    def plain(self, got: Got, history: History, *, tools: bool = False) -> None:
        self.take(self.client.models.generate_content(**self.asks(history, tools=tools)), got)

    def streamed(self, got: Got, history: History, *, tools: bool = False) -> None:
        for chunk in self.client.models.generate_content_stream(**self.asks(history, tools=tools)):
            self.take(chunk, got)

    def take(self, reply: Any, got: Got) -> None:
        got.model = reply.model_version
        if used := reply.usage_metadata:
            got.usage = (used.prompt_token_count, used.candidates_token_count)
        if not reply.candidates:
            got.lacks, got.hollow = "choices", got.hollow + 1
            return
        candidate = reply.candidates[0]
        got.finish = candidate.finish_reason and candidate.finish_reason.value
        got.lacks = "" if candidate.content else "message"
        for part in (candidate.content and candidate.content.parts) or []:
            got.text += part.text or ""
            if part.function_call:
                got.calls.append(Asking(part.function_call.id or "", part.function_call.name, part.function_call.args))

    def says(self, history: History, prompt: str) -> None:
        history.append({"role": "user", "parts": [{"text": prompt}]})

    def answered(self, history: History, got: Got) -> None:
        history.append({"role": "model", "parts": [{"text": got.text}]})

    def did(self, history: History, got: Got, results: list[str]) -> None:
        asked = [{"function_call": {"id": c.id or None, "name": c.name, "args": c.arguments}} for c in got.calls]
        gave = [
            {"function_response": {"id": c.id or None, "name": c.name, "response": {"result": text}}}
            for c, text in zip(got.calls, results, strict=True)
        ]
        history += [{"role": "model", "parts": asked}, {"role": "user", "parts": gave}]


class OllamaChat:
    """Ollama's chat."""

    provider: ClassVar[str] = "ollama"
    model: ClassVar[str] = "llama3.1:70b"
    smaller: ClassVar[str] = "llama3.1:8b"
    usd: ClassVar[float | None] = None
    TOOLS: ClassVar[Any] = Chat.TOOLS

    def __init__(self, environ: Mapping[str, str], timeout_s: float = 10.0) -> None:
        self.client = ollama.Client(environ["OLLAMA_HOST"], timeout=timeout_s)

    def close(self) -> None:
        self.client.close()

    def plain(self, got: Got, history: History, *, tools: bool = False) -> None:
        self.take(self.client.chat(self.model, history, tools=self.TOOLS if tools else None), got)

    def streamed(self, got: Got, history: History, *, tools: bool = False) -> None:
        for part in self.client.chat(self.model, history, tools=self.TOOLS if tools else None, stream=True):
            self.take(part, got)

    def take(self, part: Any, got: Got) -> None:
        self.ended(part, got)
        if not part.message.content and not part.message.tool_calls and not part.done:
            got.hollow += 1
        got.text += part.message.content or ""
        for call in part.message.tool_calls or []:
            got.calls.append(Asking("", call.function.name, dict(call.function.arguments)))

    def ended(self, part: Any, got: Got) -> None:
        got.model, got.finish = part.model, part.done_reason
        if part.prompt_eval_count is not None:
            got.usage = (part.prompt_eval_count, part.eval_count)

    def says(self, history: History, prompt: str) -> None:
        history.append({"role": "user", "content": prompt})

    def answered(self, history: History, got: Got) -> None:
        history.append({"role": "assistant", "content": got.text})

    def did(self, history: History, got: Got, results: list[str]) -> None:
        calls = [{"function": {"name": c.name, "arguments": c.arguments}} for c in got.calls]
        history.append({"role": "assistant", "content": got.text, "tool_calls": calls})
        for call, result in zip(got.calls, results, strict=True):
            history.append({"role": "tool", "tool_name": call.name, "content": result})


class OllamaGenerate(OllamaChat):
    """Ollama's generate: a bare prompt, and no tools."""

    def plain(self, got: Got, history: History, *, tools: bool = False) -> None:
        self.take(self.client.generate(self.model, history[-1]), got)

    def streamed(self, got: Got, history: History, *, tools: bool = False) -> None:
        for part in self.client.generate(self.model, history[-1], stream=True):
            self.take(part, got)

    def take(self, part: Any, got: Got) -> None:
        self.ended(part, got)
        got.text += part.response or ""
        got.hollow += not part.response and not part.done

    def says(self, history: History, prompt: str) -> None:
        history.append(prompt)


VOICES = {
    "chat": Chat,
    "responses": Responses,
    "anthropic": Messages,
    "google": Google,
    "ollama": OllamaChat,
    "generate": OllamaGenerate,
}
TALKERS = {name: voice for name, voice in VOICES.items() if name != "generate"}
"""Those that know tools."""
