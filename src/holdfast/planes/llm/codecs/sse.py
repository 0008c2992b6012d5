"""Streams of JSON values: server-sent events, lines, and the array that Google sends without `alt=sse`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from holdfast.model.completion import Cut, Pause
from holdfast.planes.llm.codecs.loose import dump_json, parse_json
from holdfast.planes.sse import EventSplitter

TYPE = "text/event-stream"

_BETWEEN = re.compile(r"[\s,\[\]]*(?={)")
"""What separates the objects of an array."""
_decoder = json.JSONDecoder()

StreamFrame: TypeAlias = bytes | Pause | Cut
"""The next step of a stream: bytes, a pause, or the end of the connection."""


def format_event(data: Any, name: str = "", end: bytes = b"\n") -> bytes:
    """Return one event with a JSON value."""
    head = b"event: " + name.encode() + end if name else b""
    return head + b"data: " + dump_json(data) + end + end


def read_events(data: bytes) -> Iterator[Any]:
    """Yield the value of each event that has data."""
    return (parse_json(event.data) for event in EventSplitter().feed(data) if event.data is not None)


def read_lines(data: bytes) -> Iterator[Any]:
    """Yield the value of each line."""
    return map(parse_json, data.splitlines())


def read_elements(data: bytes) -> Iterator[Any]:
    """Yield the objects of an array, as far as they are complete."""
    # A reply may be cut off anywhere, so the array as a whole need not be JSON: its objects are decoded one by one, and
    # the first incomplete one ends it.
    text, at = data.decode("utf-8", "replace"), 0
    while start := _BETWEEN.match(text, at):
        try:
            value, at = _decoder.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            return
        yield value


def frame_as_array(frames: Iterable[StreamFrame]) -> Iterator[StreamFrame]:
    """Yield the frames of an event stream as elements of an array, which is closed unless the connection is lost."""
    lead, cut = b"[", False
    for frame in frames:
        if isinstance(frame, bytes):
            yield lead + frame.removeprefix(b"data: ").rstrip()
            lead = b",\r\n"
        else:
            yield frame
            cut = isinstance(frame, Cut)
    if not cut:
        yield b"]" if lead != b"[" else b"[]"
