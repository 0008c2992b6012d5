"""Results of MCP servers: extracts the value that faults act on, and puts it back into the result. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from holdfast.planes.mcp.rpc import encode

Result: TypeAlias = dict[str, Any]
Put: TypeAlias = Callable[[Any], Result]
"""Returns the same result with another value."""

_WRAP = "result"
"""The field that SDKs wrap around a value that is not an object."""


class Block:
    """A content block other than text: an image, sound, a link. Faults may drop it, but never change its fields."""

    __slots__ = ("fields",)

    def __init__(self, fields: Result) -> None:
        self.fields = fields
        """The block as on the wire."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self.fields == other.fields

    __hash__ = None  # type: ignore[assignment]  # it holds a dict

    def __repr__(self) -> str:
        return encode(self.fields).decode("utf-8", "replace")


class ResultShape(Struct, frozen=True):
    """The parts that a tool's results have in addition to their content."""

    structured: bool = False
    key: str = ""
    """The single field of the structured content, if an SDK wrapped a value that is not an object."""
    text: bool = False
    """Whether the value under the key is text."""


PLAIN = ResultShape()


def read_tool_value(result: Result) -> tuple[Any, Put]:
    """Return the tool's value: its structured content, or its text, or the text of an embedded resource, or its
    blocks.

    Text stays text even if it is JSON: faults parse it themselves and keep its style.
    """
    structured = result.get("structuredContent")
    blocks = _list_blocks(result)
    texts = [block["text"] for block in blocks if _is_text(block)]
    # SDKs wrap a value that is not an object into one field. Faults get the value itself, as a tool's author would see
    # it; it is recognised by its usual name, or because its text is the whole content.
    if isinstance(structured, dict) and len(structured) == 1:
        ((key, inner),) = structured.items()
        if key == _WRAP or [inner] == texts:
            return inner, lambda value: _write_structured(result, {key: value}, value)
    if structured is not None:
        return structured, lambda value: _write_structured(result, value, value)
    if texts:
        return "\n".join(texts), _put_content(result, lambda value: _replace_first_text(blocks, value))
    at = next((i for i, block in enumerate(blocks) if _has_embedded_text(block)), None)
    if at is not None:
        block, resource = blocks[at], blocks[at]["resource"]
        return resource["text"], _put_content(
            result,
            lambda value: _replace_at(blocks, at, {**block, "resource": {**resource, "text": _to_text(value)}}),
        )
    return [Block(block) for block in blocks], _put_content(result, _write_blocks)


def read_resource_value(result: Result) -> tuple[Any, Put]:
    """Return the text of a resource: from the first part that has one."""
    parts = _list_items(result.get("contents"))
    at = next((i for i, part in enumerate(parts) if isinstance(part.get("text"), str)), None)
    if at is None:
        return None, lambda value: result
    return parts[at]["text"], lambda value: {
        **result,
        "contents": _replace_at(parts, at, {**parts[at], "text": _to_text(value)}),
    }


def read_prompt_value(result: Result) -> tuple[Any, Put]:
    """Return the text of a prompt: from the last message that has one."""
    messages = _list_items(result.get("messages"))
    at = next((i for i in reversed(range(len(messages))) if _is_text(messages[i].get("content"))), None)
    if at is None:
        return None, lambda value: result

    def put(value: Any) -> Result:
        content = {**messages[at]["content"], "text": _to_text(value)}
        return {**result, "messages": _replace_at(messages, at, {**messages[at], "content": content})}

    return messages[at]["content"]["text"], put


def read_result_shape(tool: Mapping[str, Any]) -> ResultShape:
    """Return the result format that a tool declares."""
    schema = tool.get("outputSchema")
    if not isinstance(schema, dict):
        return PLAIN
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(properties) != 1:
        return ResultShape(structured=True)
    ((key, inner),) = properties.items()
    text = isinstance(inner, dict) and inner.get("type") == "string"
    return ResultShape(structured=True, key=key if text or key == _WRAP else "", text=text)


def build_result(value: Any, shape: ResultShape) -> Result:
    """Return a result for a server that was never called, in the format that its tool declares."""
    result: Result = {"content": write_content(value), "isError": False}
    if shape.key:
        result["structuredContent"] = {shape.key: _to_text(value) if shape.text else value}
    elif shape.structured:
        result["structuredContent"] = value if isinstance(value, dict) else {_WRAP: value}
    return result


def build_replayed(value: Any, shape: ResultShape) -> Result:
    """Return the recorded result: complete, or only its value; JSON if the tool declares data, even if recorded as
    text.
    """
    content = value.get("content") if isinstance(value, dict) else None
    if isinstance(content, list) and all(isinstance(b, dict) and isinstance(b.get("type"), str) for b in content):
        return value  # type: ignore[no-any-return]  # a recorded value is untyped
    if shape.structured and not shape.text and isinstance(value, str):
        with suppress(msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            value = msgspec.json.decode(value)
    return build_result(value, shape)


def write_content(value: Any) -> list[Any]:
    """Return a value as content: text unchanged, data as JSON, nothing as nothing."""
    return [] if value is None else [{"type": "text", "text": _to_text(value)}]


def format_result(result: Mapping[str, Any]) -> str:
    """Return all text of a result, for a reader."""
    blocks = _list_blocks(result)
    texts = [block["text"] if _is_text(block) else f"[{block.get('type')}]" for block in blocks]
    return "\n".join(texts) if texts or "structuredContent" not in result else _to_text(result["structuredContent"])


def find_nontext_result(result: Result) -> Result | None:
    """Return the result if it is more than one text, or a text that a replay would not reproduce; otherwise None."""
    blocks = _list_blocks(result)
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and "structuredContent" not in result:
        return None
    if result.get("isError") is True or "content" not in result:
        return None
    return {key: result[key] for key in ("content", "structuredContent") if key in result}


def _put_content(result: Result, build_content: Callable[[Any], list[Any]]) -> Put:
    """Put a value back into a result whose value is only in its content."""
    return lambda value: {**result, "content": [] if _is_empty(value) else build_content(value)}


def _is_empty(value: Any) -> bool:
    """Return whether a value is empty: then the result has no content at all, because other blocks would count as
    content.
    """
    return value is None or (isinstance(value, str | list | dict) and not value)


def _has_embedded_text(block: dict[str, Any]) -> bool:
    """Return whether a block embeds a resource with text."""
    resource = block.get("resource") if block.get("type") == "resource" else None
    return isinstance(resource, dict) and isinstance(resource.get("text"), str)


def _write_blocks(value: Any) -> list[Any]:
    """Keep blocks as they were, and turn everything else into text."""
    items = value if isinstance(value, list) else [value]
    return [block for one in items for block in ([one.fields] if isinstance(one, Block) else write_content(one))]


def _write_structured(result: Result, structured: Any, value: Any) -> Result:
    """Write both forms of the value. Text that replaces an object is no longer structured content."""
    rest = {key: part for key, part in result.items() if key not in ("content", "structuredContent")}
    # A client with a schema accepts only an object there, so the text of a fault goes into the content alone.
    old = result.get("structuredContent")
    if isinstance(structured, dict) or not isinstance(old, dict):
        return {**rest, "content": _replace_text_blocks(result, value), "structuredContent": structured}
    return {**rest, "content": write_content(value)}


def _replace_text_blocks(result: Result, value: Any) -> list[Any]:
    """Replace the text with the value's, item by item for a list; everything else stays."""
    if _is_empty(value):
        return []
    blocks = _list_blocks(result)
    at = [i for i, block in enumerate(blocks) if _is_text(block)]
    if blocks and not at:
        return blocks
    parts = value if isinstance(value, list) and len(at) != 1 else [value]
    new_blocks = [block for part in parts for block in write_content(part)]
    first = at[0] if at else 0
    return [*blocks[:first], *new_blocks, *(block for block in blocks[first:] if not _is_text(block))]


def _replace_first_text(blocks: list[dict[str, Any]], value: Any) -> list[Any]:
    """Put the value into the first text and remove other texts; everything else stays."""
    first = next(i for i, block in enumerate(blocks) if _is_text(block))
    remaining = [(i, block) for i, block in enumerate(blocks) if i == first or not _is_text(block)]
    return [{**block, "text": _to_text(value)} if i == first else block for i, block in remaining]


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode("utf-8", "replace")


def _list_blocks(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _list_items(result.get("content"))


def _list_items(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _replace_at(items: list[dict[str, Any]], at: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    return [*items[:at], item, *items[at + 1 :]]
