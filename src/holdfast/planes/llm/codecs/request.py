"""A request to a model in one neutral form: what scripted models, other providers and faults on tool results read.

A Conversation gathers its messages, with each tool result tied to the call it answers.
"""

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


Role = Literal["system", "user", "assistant", "tool"]


class _Draft:
    """A message that has calls or results, and may get more."""

    __slots__ = ("calls", "results", "role", "text")

    def __init__(self, role: Role, text: str) -> None:
        self.role = role
        self.text = text
        self.calls: list[ToolCall] = []
        self.results: list[ToolResult] = []

    def message(self) -> ChatMessage:
        return ChatMessage(self.role, self.text, tuple(self.calls), tuple(self.results))


class Conversation:
    """Takes entries as they come. An id that comes again, or none, gets a number, so that every key is one result's."""

    def __init__(self) -> None:
        self._said: list[ChatMessage | _Draft] = []
        self._numbers: dict[str, int] = {}
        self._latest: dict[str, ToolCall] = {}
        """By the id on the wire: the call that a result with that id answers."""
        self._open: list[ToolCall] = []
        """Calls that no result has answered yet."""
        self._answered: set[str] = set()

    def say(self, role: Role, text: str) -> None:
        self._said.append(ChatMessage(role, text))

    def call(self, id: str, name: str, arguments: str) -> None:
        """A call in the last message, if it is the assistant's, else in a message of its own."""
        n = self._number(f"call {id or name}")
        key = id if id and n == 1 else f"{id or name}#{n}"
        made = ToolCall(key, name, arguments)
        if id:
            self._latest[id] = made
        self._open.append(made)
        self._last("assistant").calls.append(made)

    def result(self, id: str, name: str, text: str, failed: bool = False) -> None:
        """A result, in the last message if it holds results too."""
        call = self._answers(id, name)
        key = call.id if call else id or f"{name}#{self._number(f'result {name}')}"
        if key in self._answered:  # one call, two results
            key = f"{key}+{self._number(f'again {key}')}"
        self._answered.add(key)
        if call:
            made = ToolResult(key, call.name or name, text, call.arguments, failed)
        else:
            made = ToolResult(key, name, text, failed=failed)
        self._last("tool").results.append(made)

    def messages(self) -> tuple[ChatMessage, ...]:
        return tuple([said.message() if isinstance(said, _Draft) else said for said in self._said])

    def _last(self, role: Role) -> _Draft:
        """The last message, if it is this role's, else one of its own; to be added to."""
        last = self._said[-1] if self._said else None
        if last is None or last.role != role:
            last = _Draft(role, "")
            self._said.append(last)
        elif not isinstance(last, _Draft):
            last = self._said[-1] = _Draft(role, last.text)
        return last

    def _answers(self, id: str, name: str) -> ToolCall | None:
        """The call with the result's id; without one the first open call of the tool, or of any if it names none."""
        call = self._latest.get(id) if id else next((c for c in self._open if name in ("", c.name)), None)
        if call in self._open:
            self._open.remove(call)
        return call

    def _number(self, of: str) -> int:
        self._numbers[of] = n = self._numbers.get(of, 0) + 1
        return n
