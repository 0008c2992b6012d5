"""JSON of any depth, JSON Schema, and parts of a value by JSONPath (`$.choices[0]`) or dots (`data.result`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from holdfast.errors import AgentUnavailable
from holdfast.model.codec import encode_canonical

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def parse_json(text: str, decoder: json.JSONDecoder = _DECODER) -> Any:
    """Return the value that the decoder reads, at any depth; raise ValueError if the text is not JSON."""
    try:
        return decoder.decode(text)
    except RecursionError:
        return _parse_iteratively(text, decoder)


def _parse_iteratively(text: str, decoder: json.JSONDecoder) -> Any:
    """Parse without recursion: a stack holds the open values, an object as its pairs, the last without its value."""
    # The decoder of the standard library recurses and gives up at about a thousand levels, and an agent may return
    # deeper JSON. This parser is slower and runs only after the other has failed.
    opened: list[tuple[str, list[Any]]] = []
    at = _skip_space(text, 0)
    while True:
        bracket = text[at : at + 1]
        if bracket in ("[", "{"):
            opened.append(("]" if bracket == "[" else "}", []))
            at = _skip_space(text, at + 1)
            if not text.startswith(opened[-1][0], at):  # not empty
                at = _parse_key(text, at, opened[-1])
                continue
            at += 1
            value = _close_value(*opened.pop(), decoder)
        else:
            value, at = decoder.raw_decode(text, at)
        # A value has ended, and with it may end any number of enclosing values.
        while True:
            at = _skip_space(text, at)
            if not opened:
                if at < len(text):
                    raise json.JSONDecodeError("Extra data", text, at)
                return value
            end, inside = opened[-1]
            inside.append(value if end == "]" else (inside.pop(), value))
            if text.startswith(",", at):
                at = _parse_key(text, _skip_space(text, at + 1), opened[-1])
                break
            if not text.startswith(end, at):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at += 1
            value = _close_value(*opened.pop(), decoder)


def _parse_key(text: str, at: int, holder: tuple[str, list[Any]]) -> int:
    """Read the key of the next value if the holder is an object; return where that value begins."""
    end, inside = holder
    if end == "]":
        return at
    if not text.startswith('"', at):
        raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
    key, at = _DECODER.raw_decode(text, at)
    at = _skip_space(text, at)
    if not text.startswith(":", at):
        raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
    inside.append(key)
    return _skip_space(text, at + 1)


def _close_value(end: str, inside: list[Any], decoder: json.JSONDecoder) -> Any:
    if end == "]":
        return inside
    return dict(inside) if decoder.object_pairs_hook is None else decoder.object_pairs_hook(inside)


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def write_json(value: Any) -> str:
    """Return the value as JSON, at any depth."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "".join(_write_iteratively(value))


def _write_iteratively(value: Any) -> Iterator[str]:
    """Yield the pieces of the text without recursion: a stack holds what is still to be written, the next on top."""
    waiting: list[tuple[Literal["value", "text"], Any]] = [("value", value)]
    while waiting:
        kind, one = waiting.pop()
        if kind == "text" or not isinstance(one, list | dict):
            yield one if kind == "text" else json.dumps(one, ensure_ascii=False)
            continue
        begin, end = "[]" if isinstance(one, list) else "{}"
        keys = [""] * len(one) if isinstance(one, list) else [f"{json.dumps(key, ensure_ascii=False)}: " for key in one]
        yield begin
        waiting.append(("text", end))
        items = list(zip(keys, one if isinstance(one, list) else one.values(), strict=True))
        for at in reversed(range(len(items))):
            waiting += [("value", items[at][1]), ("text", (", " if at else "") + items[at][0])]


def build_validator(schema: Mapping[str, Any], *, formats: bool = False) -> Any:
    """Return a validator for the schema; raise ValueError if it is invalid, or refers to something outside it.

    With `formats` it also checks the formats that JSON Schema names, such as `date`.
    """
    return _compile_schema(encode_canonical(schema), formats)


@lru_cache(maxsize=256)
def _compile_schema(schema: bytes, formats: bool) -> Any:
    from jsonschema_rs import validator_for

    return validator_for(json.loads(schema), retriever=_fetch_nothing, validate_formats=formats)


def _fetch_nothing(uri: str) -> Any:
    raise ValueError("a schema must contain everything it refers to")


MISSING: Final = object()
"""There is no value. A null is None."""

Find: TypeAlias = Callable[[Any], Any]
FindAll: TypeAlias = Callable[[Any], list[Any]]

HINT = "write JSONPath ($.choices[0].message.content) or dots (data.result)"
_PLAIN = re.compile(r"\$(?:\.[A-Za-z_]\w*|\[\d+\])*")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]|\[(['\"])(.+?)\3\]")


class BadPath(ValueError):
    """The text is neither JSONPath nor dots; carries the reason."""


@lru_cache(maxsize=256)
def compile_path(path: str) -> FindAll:
    """Return a finder for every part that the path names; raise BadPath if it is not a path.

    The finder of a path with `..` raises RecursionError if the value has more than a thousand levels.
    """
    if not path:
        raise BadPath("it is empty")
    if path.startswith("$") and not _PLAIN.fullmatch(path):
        return _compile_jsonpath(path)
    steps = _parse_steps(path.removeprefix("$"))

    def find(value: Any) -> list[Any]:
        parts = _walk_steps(value, steps)
        return [] if parts is MISSING else [parts]

    return find


def compile_answer_path(path: str) -> Find:
    """Return a finder for the answer at a path: MISSING, one value, or several, joined if all are texts."""
    try:
        parts_at = compile_path(path)
    except BadPath as bad:
        raise AgentUnavailable(
            f"agent.response_path {path!r} is not a path: {bad}", code="agent-config-invalid", hint=HINT, config=True
        ) from None

    def find(value: Any) -> Any:
        try:
            parts = parts_at(value)
        except RecursionError:
            return MISSING
        if len(parts) < 2:
            return parts[0] if parts else MISSING
        texts = [item for item in parts if isinstance(item, str)]
        return "\n".join(texts) if len(texts) == len(parts) else parts

    return find


def _parse_steps(rest: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    while rest:
        match = _STEP.match(rest)
        if not match:
            raise BadPath(f"cannot parse it from {rest!r} on")
        steps.append(int(match[2]) if match[2] else match[4] or match[1])
        rest = rest[match.end() :]
    return tuple(steps)


def _walk_steps(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if isinstance(value, list):
            value = _get_item(value, step)
        elif isinstance(value, dict):
            value = value.get(step, MISSING)
        else:
            return MISSING
    return value


def _get_item(items: list[Any], step: str | int) -> Any:
    try:
        return items[int(step)]
    except (ValueError, IndexError):
        return MISSING


def _compile_jsonpath(path: str) -> FindAll:
    from jsonpath import JSONPathError, compile

    try:
        compiled = compile(path)
    except JSONPathError as bad:
        raise BadPath(str(bad).splitlines()[0]) from None

    def find(value: Any) -> list[Any]:
        return list(compiled.findall(value)) if isinstance(value, dict | list) else []

    return find
