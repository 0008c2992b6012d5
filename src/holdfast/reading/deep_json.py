"""JSON of any depth: Python's own reader gives up after about a thousand levels, and that is not the writer's fault."""

from __future__ import annotations

import json
import re
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = json.JSONDecoder()


def loads(text: str, decoder: json.JSONDecoder = _PLAIN) -> Any:
    """The value that the decoder reads, however deep; ValueError if the text is not JSON."""
    try:
        return decoder.decode(text)
    except RecursionError:
        return _read(text, decoder)


def _read(text: str, decoder: json.JSONDecoder) -> Any:
    """The same without recursion: what is open is on a stack, an object as its pairs, the last without its value."""
    opened: list[tuple[str, list[Any]]] = []
    at = _skip(text, 0)
    while True:
        bracket = text[at : at + 1]
        if bracket in ("[", "{"):
            opened.append(("]" if bracket == "[" else "}", []))
            at = _skip(text, at + 1)
            if not text.startswith(opened[-1][0], at):  # not empty
                at = _key(text, at, opened[-1])
                continue
            at += 1
            value = _closed(*opened.pop(), decoder)
        else:
            value, at = decoder.raw_decode(text, at)
        # A value has ended; with it may end any number of what it is in.
        while True:
            at = _skip(text, at)
            if not opened:
                if at < len(text):
                    raise json.JSONDecodeError("Extra data", text, at)
                return value
            end, inside = opened[-1]
            inside.append(value if end == "]" else (inside.pop(), value))
            if text.startswith(",", at):
                at = _key(text, _skip(text, at + 1), opened[-1])
                break
            if not text.startswith(end, at):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at += 1
            value = _closed(*opened.pop(), decoder)


def _key(text: str, at: int, holder: tuple[str, list[Any]]) -> int:
    """Reads the key of an object's next value, if it is an object; where that value begins."""
    end, inside = holder
    if end == "]":
        return at
    if not text.startswith('"', at):
        raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
    key, at = _PLAIN.raw_decode(text, at)
    at = _skip(text, at)
    if not text.startswith(":", at):
        raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
    inside.append(key)
    return _skip(text, at + 1)


def _closed(end: str, inside: list[Any], decoder: json.JSONDecoder) -> Any:
    if end == "]":
        return inside
    return dict(inside) if decoder.object_pairs_hook is None else decoder.object_pairs_hook(inside)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
