"""Request templates: parsed once, then filled for every prompt, whatever text it contains."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias
from urllib.parse import quote_plus

from msgspec import Struct

from holdfast.errors import AgentMisconfigured

_NAME = r"\{([A-Za-z_][\w-]*)\}"
_FIELD = re.compile(_NAME)
_STRING_OR_FIELD = re.compile(r'("(?:[^"\\]|\\.)*")|' + _NAME, re.DOTALL)
_KEY_LINE = re.compile(r"\s*([^\W\d][\w /.-]{0,60}?)\s*:(?:\s+(.*))?$")

MESSAGES = "messages"
"""The placeholder for the conversation so far, as JSON."""

WriteText: TypeAlias = Callable[[str], str]


class Slot(Struct, frozen=True):
    """A `{name}` of a template and how its value is written there."""

    name: str
    key: str
    write: WriteText
    literal: str | None = None
    """The text to write if the field is unknown; None makes that an error."""

    @property
    def sample(self) -> str:
        """A sample value, to see how it changes the template."""
        return '"x"' if self.write is _keep_json else self.write("x")


class RequestTemplate(Struct, frozen=True):
    """Literal text and placeholders, in order."""

    parts: tuple[str | Slot, ...]
    is_json: bool = False

    @property
    def takes_messages(self) -> bool:
        """Whether it has a placeholder for the conversation so far."""
        return any(not isinstance(part, str) and part.name == MESSAGES for part in self.parts)

    def fill(self, fields: TemplateFields) -> str:
        return "".join([part if isinstance(part, str) else fields.write(part) for part in self.parts])


class TemplateFields:
    """The values that one prompt offers: itself as `{prompt}`, the conversation, and its `key: value` lines."""

    __slots__ = ("_fields_by_key", "_messages", "_prompt", "_source")

    def __init__(self, prompt: str, source: Iterable[str] = (), messages: str = "[]") -> None:
        """`source` are the texts to take fields from; a later one overrides. They are parsed only if needed.

        `messages` is the conversation so far, as JSON.
        """
        self._prompt = prompt
        self._messages = messages
        self._source = source
        self._fields_by_key: Mapping[str, tuple[str, str]] | None = None

    def write(self, slot: Slot) -> str:
        if slot.name == "prompt":
            return slot.write(self._prompt)
        if slot.name == MESSAGES:
            return slot.write(self._messages)
        if self._fields_by_key is None:
            self._fields_by_key = {
                normalize_key(k): (k, v) for text in self._source for k, v in parse_fields(text).items()
            }
        value = self._fields_by_key.get(slot.key)
        if value is not None:
            return slot.write(value[1])
        if slot.literal is None:
            known = ", ".join(["prompt", *(name for name, _ in self._fields_by_key.values())])
            raise AgentMisconfigured(
                f"the request uses {{{slot.name}}}, but this prompt has no such field",
                hint=f"known here: {known}; fields come from `key: value` lines of the prompt",
            )
        return slot.literal


def parse_fields(text: str) -> dict[str, str]:
    """Return the `key: value` lines of a prompt; a line without a key continues the value above it."""
    fields: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        match = _KEY_LINE.match(line)
        if match:
            key = match[1]
            fields[key] = (match[2] or "").rstrip()
        elif key and line.strip():
            fields[key] = f"{fields[key]}\n{line}".lstrip("\n")
    return fields


def normalize_key(name: str) -> str:
    """Return a key for comparison: `Business Model`, `business_model` and `businessModel` name the same field."""
    return "".join(c for c in name.casefold() if c.isalnum())


def make_body_template(text: str, content_type: str = "") -> RequestTemplate:
    """Return a template for a body: JSON if it is JSON apart from its placeholders, else text."""
    # A template is JSON if it parses once every placeholder is replaced by a sample. Then values are escaped for their
    # position, and no prompt can break the body.
    parts = _join(_split_json(text))
    sample = "".join(p if isinstance(p, str) else p.sample for p in parts)
    try:
        json.loads(sample)
    except ValueError:
        form = "x-www-form-urlencoded" in content_type.lower()
        write = partial(quote_plus, errors="replace") if form else str
        return RequestTemplate(_join(_split_text(text, write, keep_unknown=not form)))
    return RequestTemplate(parts, is_json=True)


def make_text_template(text: str) -> RequestTemplate:
    """Return a template for one value of the query."""
    return RequestTemplate(_join(_split_text(text, replace_surrogates, keep_unknown=False)))


def replace_surrogates(value: str) -> str:
    """Return the value with lone surrogates replaced, which UTF-8 cannot encode."""
    return value.encode("utf-8", "replace").decode()


def _join(parts: Iterable[str | Slot]) -> tuple[str | Slot, ...]:
    """Join adjacent literal parts."""
    joined: list[str | Slot] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, str) and isinstance(last, str):
            joined[-1] = last + part
        elif part != "":
            joined.append(part)
    return tuple(joined)


def _split_json(text: str) -> Iterator[str | Slot]:
    end = 0
    for match in _STRING_OR_FIELD.finditer(text):
        yield text[end : match.start()]
        if MESSAGES in (match[2], (match[1] or "")[2:-2]):  # even in quotes it is a list, not text
            yield Slot(MESSAGES, MESSAGES, _keep_json)
        elif match[1] is None:
            yield Slot(match[2], normalize_key(match[2]), json.dumps)
        else:
            yield from _split_text(match[1], lambda value: json.dumps(value)[1:-1], keep_unknown=False)
        end = match.end()
    yield text[end:]


def _split_text(text: str, write: WriteText, *, keep_unknown: bool) -> Iterator[str | Slot]:
    end = 0
    for match in _FIELD.finditer(text):
        yield text[end : match.start()]
        yield Slot(match[1], normalize_key(match[1]), write, match[0] if keep_unknown else None)
        end = match.end()
    yield text[end:]


def _keep_json(value: str) -> str:
    """Return text that is JSON already."""
    return value
