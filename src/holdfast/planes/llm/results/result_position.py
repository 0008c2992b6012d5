"""Where in its conversation a tool result stands: what was said before its call, and whether the model has read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from msgspec import Struct

from holdfast.planes.llm.codecs.request import ChatMessage, ToolResult

_SIZE = 12
_NUMBER = re.compile(r"[#+]\d+$")


class ResultPosition(Struct, frozen=True):
    """A result in a conversation."""

    result: ToolResult
    before: bytes
    """Digest of all that was said before the model asked for the call. Results are no part of it: agents cut them."""
    fresh: bool
    """The model has said nothing since."""
    last: bool
    """Nobody has said anything since."""
    alone: bool
    """Its call is not in the conversation: a server keeps that, or the agent has left it out."""
    again: bool
    """Its call has a result in the conversation already."""
    at: int
    """How many messages come before it."""
    heard: Mapping[bytes, int]
    """What was said to the model, by `mark_of` the text: after how many messages first."""

    @property
    def id(self) -> str:
        """The call's id on the wire, without the number that tells repetitions apart; empty if it has none."""
        stem = _NUMBER.sub("", self.result.key)
        return "" if stem == self.result.name and stem != self.result.key else stem

    def after(self, *marks: bytes) -> bool:
        """Whether one of these texts was said before it."""
        return any(self.heard.get(mark, self.at) < self.at for mark in marks)


def placed(messages: Sequence[ChatMessage]) -> list[ResultPosition]:
    """Every result of a conversation, in order."""
    if not any(message.results for message in messages):
        return []
    told = blake2b(digest_size=_SIZE)
    before = told.digest()
    found: list[tuple[ToolResult, bytes, int]] = []
    answered = spoken = -1
    for at, message in enumerate(messages):
        if message.role == "assistant":
            before, answered = told.digest(), at
        spoken = spoken if message.role == "tool" else at
        found += [(result, before, at) for result in message.results]
        _tell(told, message)
    made = {call.id for message in messages for call in message.tool_calls}
    keys = {result.key for result, _, _ in found}
    heard = _heard(messages)
    return [
        ResultPosition(
            r, before, at > answered, at > spoken, r.key not in made, r.key.rpartition("+")[0] in keys, at, heard
        )
        for r, before, at in found
    ]


def said(messages: Iterable[ChatMessage]) -> bytes:
    """Digest of a whole conversation: the `before` of the calls that the model asks for next."""
    told = blake2b(digest_size=_SIZE)
    for message in messages:
        _tell(told, message)
    return told.digest()


def first_and_last(messages: Sequence[ChatMessage]) -> tuple[bytes, bytes]:
    """The first and the last text that the model was to answer, as `heard` knows them."""
    texts = [m.text for m in messages if m.role == "user" and m.text]
    texts = texts or [m.text for m in messages if m.role == "system" and m.text]
    return (mark_of(texts[0]), mark_of(texts[-1])) if texts else (b"", b"")


def mark_of(text: str) -> bytes:
    """What a text is known by."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()


def _heard(messages: Sequence[ChatMessage]) -> dict[bytes, int]:
    heard: dict[bytes, int] = {}
    for at, message in enumerate(messages):
        if message.text and message.role in ("user", "system"):
            heard.setdefault(mark_of(message.text), at)
    return heard


def _tell(told: blake2b, message: ChatMessage) -> None:
    if message.role == "tool":
        return
    told.update(f"\0{message.role}\0{message.text}".encode("utf-8", "surrogatepass"))
    for call in message.tool_calls:
        told.update(f"\1{call.id}\1{call.name}\1{call.arguments}".encode("utf-8", "surrogatepass"))
