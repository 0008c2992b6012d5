"""Requests and replies as a recording keeps them: what a request is known by, and a reply's chunks without secrets."""

from __future__ import annotations

import base64
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.codec import canonical, carried, digest, encodable
from holdfast.model.completion import Completion, Delta, ToolCall
from holdfast.planes.llm.codecs.loose import parse
from holdfast.planes.llm.sources.source import Query, RawReply, StoredReply

Mask: TypeAlias = Callable[[str], str]

_VOLATILE = frozenset(
    {
        "user",
        "metadata",
        "safety_identifier",
        "prompt_cache_key",
        "service_tier",
        "store",
        "stream_options",
        "keep_alive",
    }
)
"""Parts of a request that name the caller or tune the service: the answer does not depend on them."""
_IDS = frozenset({"id", "tool_call_id", "tool_use_id", "call_id"})
"""Ids that some client libraries draw anew in every run; their order is what counts."""
_DATA = frozenset({"input", "args", "arguments", "response", "parameters", "input_schema"})
"""Maps that are the tools' own: an `id` in them is a value like any other."""


class Texts(Struct, frozen=True):
    """A reply's chunks."""

    chunks: tuple[str, ...]
    binary: bool = False


def key_of(query: Query, mask: Mask) -> str:
    """What a request is known by: the same in every run that asks the same."""
    path = query.path.partition("?")[0]
    path = path[3:] if path.startswith("/v1/") else path
    return digest(f"{query.provider} {query.method} {path}\n".encode() + _content(query, mask), 16)


def _content(query: Query, mask: Mask) -> bytes:
    if not isinstance(query.data, dict):
        return query.body
    try:
        steady = _steady({k: v for k, v in query.data.items() if k not in _VOLATILE}, {})
        return mask(canonical(carried(steady)).decode()).encode()
    except RecursionError:
        return query.body


def _steady(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_steady(item, ids) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _steady_in(name, inner, ids) for name, inner in value.items()}


def _steady_in(name: str, value: Any, ids: dict[str, str]) -> Any:
    if name in _IDS and isinstance(value, str):
        return ids.setdefault(value, f"#{len(ids)}")
    return value if name in _DATA and isinstance(value, dict) else _steady(value, ids)


def kept(query: Query, wire: RawReply, chunks: list[bytes], mask: Mask) -> Texts | None:
    """The chunks as they may be stored; None if a secret is in them that cannot be masked."""
    try:
        text = b"".join(chunks).decode()
    except UnicodeDecodeError:
        blurred = b"".join(chunks).decode("latin-1")
        return None if mask(blurred) != blurred else Texts(tuple([_base64(chunk) for chunk in chunks]), binary=True)
    masked = _masked(_understood(query, wire, text), mask)
    if masked is not None:
        return Texts(tuple([c.decode() for c in written(query, masked).parts]))
    if mask(text) != text:
        return Texts((mask(text),))
    return Texts(_as_texts(chunks))


def written(query: Query, completion: Completion) -> StoredReply:
    """A reply in the agent's format, as bytes."""
    assert query.codec is not None
    assert query.asked is not None
    if not query.asked.stream:
        body = query.codec.body(completion, query.asked)
        return StoredReply(200, (("content-type", "application/json"),), (body,))
    frames = tuple([frame for frame in query.codec.frames(completion, query.asked) if isinstance(frame, bytes)])
    return StoredReply(200, (("content-type", query.codec.stream_type),), frames)


def bytes_of(chunks: tuple[str, ...], binary: bool) -> tuple[bytes, ...]:
    """The chunks as they were sent; ValueError if they are not base64 where they should be."""
    return tuple([base64.b64decode(chunk, validate=True) if binary else chunk.encode() for chunk in chunks])


def _understood(query: Query, wire: RawReply, text: str) -> Completion | None:
    """What the reply says, in neutral form: a secret may be split over the events of a stream."""
    if query.codec is None or wire.status != 200:
        return None
    if query.stream:
        reader = query.codec.reader()
        reader.feed(text.encode())
        return reader.completion()
    reply = parse(text)
    return None if reply is None else query.codec.reply(reply)


def _masked(completion: Completion | None, mask: Mask) -> Completion | None:
    """The reply with its secrets masked; None if it has none."""
    if completion is None:
        return None
    deltas: list[Delta] = []
    for delta in completion.deltas:
        deltas.append(replace(delta, arguments=mask(delta.arguments)) if isinstance(delta, ToolCall) else delta)
    masked = replace(completion, deltas=tuple(deltas))
    if mask(completion.text) != completion.text:
        masked = masked.with_text(mask(completion.text))
    return None if masked == completion else masked


def _as_texts(chunks: list[bytes]) -> tuple[str, ...]:
    """Each chunk as text; a character that was split over two stands in the second."""
    decoder = getincrementaldecoder("utf-8")()
    return tuple([encodable(text) for chunk in chunks if (text := decoder.decode(chunk))])


def _base64(chunk: bytes) -> str:
    return base64.b64encode(chunk).decode()
