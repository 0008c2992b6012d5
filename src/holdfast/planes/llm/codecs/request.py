"""A model request in one neutral form, which scripted models, other providers and faults on tool results read.

A Conversation collects its messages and links each tool result to its call.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.completion import ToolCall

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class ToolResult(Struct, frozen=True):
    """A tool's result in a request to the model."""

    key: str
    """The call's id if the format has one, otherwise `name#ordinal` in the conversation."""
    name: str
    """The tool; taken from the call if the result does not name it."""
    text: str
    arguments: str = "{}"
    """The arguments of its call, as JSON text."""
    failed: bool = False
    """Whether the result is marked as failed, if the format supports that."""


class ChatMessage(Struct, frozen=True):
    """One entry of the conversation."""

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


class ToolDeclaration(Struct, frozen=True):
    """A tool that the model may call."""

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
    tools: tuple[ToolDeclaration, ...] = ()
    stream: bool = False
    with_usage: bool = True
    """Whether a stream ends with its usage: OpenAI's Chat Completions sends it only on request."""
    max_tokens: int | None = None
    temperature: float | None = None
    tool_choice: str | None = None
    """auto, none, required, or the name of a tool."""
    json_reply: bool = False
    """Whether the reply must be a JSON object."""
    continues: bool = False
    """Whether a server keeps the earlier messages."""
    copies: int = 1
    """Number of choices in the reply."""
    schema: dict[str, Any] | None = None
    """A JSON Schema that the provider enforces on the reply."""
    unscriptable: tuple[str, ...] = ()
    """The parts of a reply that the request demands and only a real model can provide."""
    echo: dict[str, Any] = {}
    """Settings of the request that the provider repeats in its reply."""

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Every tool result in the conversation, in order."""
        return tuple([result for message in self.messages for result in message.results])

    @property
    def prompt(self) -> str:
        """The user's last message."""
        return next((m.text for m in reversed(self.messages) if m.role == "user" and m.text), "")


class _Draft(Struct):
    """A message to which calls and results may still be added."""

    role: Role
    text: str = ""
    calls: list[ToolCall] = []
    results: list[ToolResult] = []


class Conversation:
    """Collects entries as they come. A repeated or missing id gets a number, so every key belongs to one result."""

    def __init__(self) -> None:
        self._messages: list[_Draft] = []
        self._numbers: dict[str, int] = {}
        self._latest: dict[str, ToolCall] = {}
        """By id on the wire: the call that a result with that id answers."""
        self._open: list[ToolCall] = []
        """Calls without a result so far."""
        self.result_nodes: dict[str, dict[str, Any]] = {}
        """The part of the request that holds each result, by the result's key."""

    def add_message(self, role: Role, text: str) -> None:
        self._messages.append(_Draft(role, text))

    def add_call(self, id: str, name: str, arguments: str) -> None:
        """Add a call to the last message if that is the assistant's, otherwise to a new one."""
        # Ids may be missing (Ollama), or repeated by frameworks that count from zero in every turn. Each call gets a
        # key of its own, or a result would change the text of another one.
        n = self._count(f"call {id or name}")
        key = id if id and n == 1 else f"{id or name}#{n}"
        call = ToolCall(key, name, arguments)
        if id:
            self._latest[id] = call
        self._open.append(call)
        self._get_last("assistant").calls.append(call)

    def add_result(self, node: dict[str, Any], id: str, name: str, text: str, failed: bool = False) -> None:
        """Add the result that a part of the request holds: to the last message if that has results, otherwise to a new
        one."""
        # The key decides which result a fault changes, so it must be the same in every request that repeats the
        # conversation, and different for two results of one call.
        call = self._find_call(id, name)
        key = call.id if call else id or f"{name}#{self._count(f'result {name}')}"
        if key in self.result_nodes:  # one call with two results
            key = f"{key}+{self._count(f'again {key}')}"
        self.result_nodes[key] = node
        if call:
            result = ToolResult(key, call.name or name, text, call.arguments, failed)
        else:
            result = ToolResult(key, name, text, failed=failed)
        self._get_last("tool").results.append(result)

    def build_messages(self) -> tuple[ChatMessage, ...]:
        return tuple([ChatMessage(d.role, d.text, tuple(d.calls), tuple(d.results)) for d in self._messages])

    def _get_last(self, role: Role) -> _Draft:
        """Return the last message if it has this role, otherwise a new one; the caller adds to it."""
        if not self._messages or self._messages[-1].role != role:
            self._messages.append(_Draft(role))
        return self._messages[-1]

    def _find_call(self, id: str, name: str) -> ToolCall | None:
        """Return the call with the result's id; without an id the first open call of the tool, or of any tool if it
        names none."""
        call = self._latest.get(id) if id else next((c for c in self._open if name in ("", c.name)), None)
        if call in self._open:
            self._open.remove(call)
        return call

    def _count(self, of: str) -> int:
        self._numbers[of] = n = self._numbers.get(of, 0) + 1
        return n
