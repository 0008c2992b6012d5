"""Event-stream replies: the `data:` text of all events, joined."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from holdfast.agents.http_path import find_answer, text_of
from holdfast.planes.sse import data_of
from holdfast.reading.json_path import MISSING, Find


class Stream(NamedTuple):
    """What a stream said, and its JSON events, for those who look for an error in them."""

    text: str | None
    """None if the stream had no place for an answer."""
    events: list[dict[str, Any]]


def read_stream(text: str, find: Find | None = None) -> Stream:
    """The answer in an event stream: the found pieces of its JSON events, else its data as it is."""
    found = [event.decode("utf-8", "surrogatepass") for event in data_of(text.encode("utf-8", "surrogatepass"))]
    data = [event for event in found if event.strip() != "[DONE]"]
    events = _objects(data)
    if not events:
        return Stream("".join(data) if data else None, [])
    if find is not None:
        return Stream(_joined([find(event) for event in events], unwrap=False), events)
    pieces = _joined([_delta(event) for event in events])
    if pieces is None:
        pieces = _joined([find_answer(event) for event in events])
    return Stream("".join(data) if pieces is None else pieces, events)


def _objects(data: list[str]) -> list[dict[str, Any]]:
    """The events as objects, or none at all if one of them is not; a last one may be cut off."""
    events: list[dict[str, Any]] = []
    for n, event in enumerate(data, 1):
        try:
            value = json.loads(event)
        except (ValueError, RecursionError):
            if n == len(data):
                break
            return []
        if not isinstance(value, dict):
            return []
        events.append(value)
    return events


def _joined(found: list[Any], *, unwrap: bool = True) -> str | None:
    pieces = [text_of(value, unwrap=unwrap) for value in found if value is not MISSING and value is not None]
    return "".join(pieces) if pieces else None


def _delta(event: dict[str, Any]) -> Any:
    """The piece of answer in a chunk of the common model APIs."""
    choices = event.get("choices")
    if not isinstance(choices, list):
        return _content(event.get("delta"))
    choice = choices[0] if choices and isinstance(choices[0], dict) else {}
    found = (_content(choice.get(key)) for key in ("delta", "message", "text"))
    return next((piece for piece in found if piece is not None), None)


def _content(part: Any) -> str | None:
    if isinstance(part, dict):
        part = part.get("content", part.get("text"))
    return part if isinstance(part, str) else None
