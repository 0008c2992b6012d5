"""A request to a model in one neutral form: what scripted models, other providers and faults on tool results read."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from holdfast.model.completion import ToolCall


class ToolResult(Struct, frozen=True):
    """What a tool gave, on its way to the model."""

    key: str
    """Which call it answers: its id where the format has one, else `name#ordinal` in the conversation."""
    name: str
    """The tool; found by way of the call it answers where the result does not say."""
    text: str
    arguments: str = "{}"
    """Of the call it answers, as JSON text."""
    failed: bool = False
    """The result says that the tool failed, where the format has a place for that."""


class ChatMessage(Struct, frozen=True):
    """One entry of the conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


class ToolDeclared(Struct, frozen=True):
    """A tool that the model may ask for."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """Its arguments as a JSON Schema."""
    form: str = ""
    """How it is declared, if not as a tool with a JSON object as its arguments."""


class ModelRequest(Struct, frozen=True):
    """A request to a model."""

    model: str
    messages: tuple[ChatMessage, ...] = ()
    tools: tuple[ToolDeclared, ...] = ()
    stream: bool = False
    with_usage: bool = True
    """Whether a stream is to end with its usage: OpenAI's Chat Completions only does so on request."""
    max_tokens: int | None = None
    temperature: float | None = None
    tool_choice: str | None = None
    """auto, none, required, or the name of a tool."""
    json_reply: bool = False
    """The reply is to be a JSON object."""
    goes_on: bool = False
    """A server keeps what was said before."""
    copies: int = 1
    """How many choices the reply has."""
    schema: dict[str, Any] | None = None
    """A JSON Schema that the provider makes the reply follow."""
    unscriptable: tuple[str, ...] = ()
    """What the reply is to have and only a model can give."""
    echo: dict[str, Any] = {}
    """Settings of the request that the provider repeats in its reply."""

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Every tool result in the conversation, in order."""
        return tuple([result for message in self.messages for result in message.results])

    @property
    def prompt(self) -> str:
        """The last thing the user said."""
        return next((m.text for m in reversed(self.messages) if m.role == "user" and m.text), "")
