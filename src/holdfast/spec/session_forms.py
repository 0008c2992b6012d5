"""How the turns of a recorded session are written: a text, or a list of texts and messages."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.task import DialogueMessage
from holdfast.reading.fields import Schema, ValueForm, about
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Reader
from holdfast.reading.words import found

DATE_RANGE = "last_7_days"
_RANGE = r"last_(\d{1,6})_(minute|hour|day|week)s?"
_TEXT = Annotated[str, about("", min_length=1)]


class MessageKeys(Struct, frozen=True):
    """Who said what."""

    role: Annotated[Literal["user", "assistant", "system", "tool"], about("Who said it.")]
    content: Annotated[str, about("What was said.")]


def range_seconds(text: str) -> int | None:
    """How far back `last_7_days` goes; None for `all`. ValueError if it is neither."""
    if text == "all":
        return None
    said = re.fullmatch(_RANGE, text)
    if said is None:
        raise ValueError(f"expected last_7_days, last_24_hours or all, found {text[:60]!r}")
    return int(said[1]) * {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}[said[2]]


def _messages(reader: Reader, node: Node, path: str) -> Any:
    """Texts are what the user said."""
    if node.kind != "list":
        hint = "a list of {role, content}, or of texts that the user wrote"
        return reader.error(node, path, f"expected a list, found {found(node)}", hint=hint, code="wrong-type")
    read = [_message(reader, item, f"{path}[{index}]") for index, item in enumerate(node.items)]
    return BAD if any(one is BAD for one in read) else tuple(read)


def _message(reader: Reader, node: Node, path: str) -> Any:
    if node.kind != "map":
        text = reader.read(_TEXT, node, path)
        return BAD if text is BAD else DialogueMessage("user", text)
    said = reader.section(MessageKeys, node, path)
    return BAD if said is BAD else DialogueMessage(said.role, said.content)


def _input(reader: Reader, node: Node, path: str) -> Any:
    if node.kind != "list":
        text = reader.read(_TEXT, node, path)
        return BAD if text is BAD else (DialogueMessage("user", text),)
    said = _messages(reader, node, path)
    if said is BAD:
        return BAD
    if not said or said[-1].role != "user":
        hint = "the last message is what is asked; put what was answered before into context"
        return reader.error(node, path, "ends without a message of the user", hint=hint, code="bad-value")
    return said


def _date_range(reader: Reader, node: Node, path: str) -> Any:
    text = reader.read(str, node, path)
    if text is BAD:
        return BAD
    try:
        range_seconds(text)
    except ValueError as wrong:
        return reader.error(node, path, str(wrong), code="bad-value")
    return text


def _schema() -> Schema:
    message = {
        "type": "object",
        "properties": {
            "role": {"enum": ["user", "assistant", "system", "tool"]},
            "content": {"type": "string"},
        },
        "required": ["role", "content"],
        "additionalProperties": False,
    }
    return {"type": "array", "items": {"anyOf": [{"type": "string"}, message]}}


PriorTurns: TypeAlias = Annotated[tuple[Any, ...], ValueForm(_messages, _schema, "a list of texts and {role, content}")]
SessionInput: TypeAlias = Annotated[
    tuple[Any, ...],
    ValueForm(_input, lambda: {"anyOf": [{"type": "string"}, _schema()]}, "text, or a list of texts and messages"),
]
DateRange: TypeAlias = Annotated[
    str, ValueForm(_date_range, lambda: {"type": "string", "pattern": f"^(all|{_RANGE})$"}, "text")
]
