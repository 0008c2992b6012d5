"""Reads a streamed reply as it passes: the part that all formats share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from holdfast.model.completion import Completion
from holdfast.planes.llm.codecs.asides import Like
from holdfast.planes.llm.codecs.loose import obj, parse
from holdfast.planes.llm.codecs.streamed_reply import StreamedReply


class Parts(Protocol):
    """Splits a stream into its events, lines or elements: a name, if it has one, and its JSON."""

    def feed(self, data: bytes) -> list[tuple[str, bytes]]: ...


class FormatReader:
    """A reader of one format; `take` gathers what one event says. What is no JSON object is left out."""

    def __init__(
        self, parts: Parts, take: Callable[[dict[str, Any], StreamedReply], None], *, keep: bool = False
    ) -> None:
        self._parts = parts
        self._take = take
        self._got = StreamedReply(keep=keep)
        self._first: dict[str, Any] | None = None

    def feed(self, data: bytes) -> None:
        for _, told in self._parts.feed(data):
            if found := obj(parse(told)):
                self._first = self._first or found
                self._take(found, self._got)

    def completion(self) -> Completion:
        return self._got.completion()

    def like(self) -> Like:
        return self._got.like(self._first)
