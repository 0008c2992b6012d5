"""Whether a reply comes from a model's server at all: a sign-in page of a network, a wrong base URL do not."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from holdfast.planes.llm.codecs.loose import parse
from holdfast.planes.llm.sources.source import RawReply

_PAGES = (b"<!doctype html", b"<html")
_MARKS = frozenset(
    [
        "choices",
        "content",
        "candidates",
        "message",
        "messages",
        "output",
        "response",
        "error",
        "usage",
        "usageMetadata",
        "promptFeedback",
        "data",
        "embedding",
        "embeddings",
        "id",
        "object",
        "type",
        "model",
        "done",
    ]
)
"""Fields one of which every reply of a model's API has, whatever its format."""
_LOOKED_AT = 4_000_000
"""Bytes in which the first event of a stream is looked for."""


def foreign(wire: RawReply, body: bytes, *, stream: bool, whole: bool) -> str:
    """What came in the place of a model's reply, in a word or two; empty if it may be one.

    A page is none, whatever its status. Data that is `whole` is none if it cannot be read.
    """
    kind = content_type(wire)
    if kind == "text/html" or body[:200].lstrip().lower().startswith(_PAGES):
        return "text/html"
    if wire.status >= 300 or not whole:
        return ""
    if not body.strip():
        return "nothing"
    if stream and kind != "application/json":
        return "" if first_event(body) is not None else kind or "no type"
    data = parse(body)
    objects = data if isinstance(data, list) else [data]  # Gemini streams an array
    known = [one for one in objects if isinstance(one, dict) and not _MARKS.isdisjoint(one)]
    return "" if objects and len(known) == len(objects) else kind or "no type"


def content_type(wire: RawReply) -> str:
    return _media_type(wire.get("content-type") or "")


@lru_cache(64)
def _media_type(value: str) -> str:
    return value.partition(";")[0].strip().lower()


def first_event(body: bytes) -> Any:
    """The first event of a stream, for the fields that every event repeats; None if there is none."""
    for line in body[:_LOOKED_AT].splitlines():
        event = line.removeprefix(b"data:").strip(b" ,[")
        if event.startswith(b"{"):
            return parse(event)
    return None
