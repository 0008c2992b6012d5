"""JSON-RPC as MCP uses it: messages read and written, nothing sent. Pure."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast.model.codec import carried

Id: TypeAlias = int | float | str

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SESSION_LOST = -32001
"""What servers answer to a session that they do not know. Requests that timed out share the code."""
TIMED_OUT = -32001

CALL, LIST, READ, PROMPT = "tools/call", "tools/list", "resources/read", "prompts/get"
INITIALIZE = "initialize"
CANCELLED = "notifications/cancelled"
_VERSION = "io.modelcontextprotocol/protocolVersion"


class RpcMessage(Struct, frozen=True):
    """One message; what it carries is decoded when asked for."""

    id: Id | UnsetType | None = UNSET
    method: str | None = None
    params: Raw = Raw()
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def answers(self) -> bool:
        """It is the answer to a request."""
        return self.method is None and (self.result is not UNSET or self.error is not UNSET)


class RpcRequest(Struct, frozen=True):
    """A request with its parameters."""

    id: Id
    method: str
    params: dict[str, Any]
    raw: bytes

    @property
    def stateless(self) -> bool:
        """It says its protocol version itself: there is no session, and nothing comes unasked."""
        meta = self.params.get("_meta")
        return isinstance(meta, dict) and _VERSION in meta

    def with_arguments(self, arguments: Any) -> RpcRequest:
        """The same call with other arguments."""
        if arguments is self.params.get("arguments"):
            return self
        params = {**self.params, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": self.id, "method": self.method, "params": params}
        return RpcRequest(self.id, self.method, params, encode(message))


class RpcAnswer(Struct, frozen=True):
    """What a server answered, with the bytes it came in."""

    message: RpcMessage
    raw: bytes


_encoder = msgspec.json.Encoder(enc_hook=str)
_message = msgspec.json.Decoder(RpcMessage)
_json = msgspec.json.Decoder()

encode = _encoder.encode
_UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError)


def read(line: bytes) -> RpcMessage | None:
    """The message that a line holds; None if it is none, or a batch of them."""
    try:
        return _message.decode(line)
    except _UNREADABLE:
        pass
    try:
        return _message.decode(encode(_mended(line)))
    except _UNREADABLE:
        return None


def request(message: RpcMessage, line: bytes) -> RpcRequest | None:
    """The request that a message is; None for a notification, an answer, or parameters that are no object."""
    if message.method is None or message.id is UNSET or message.id is None:
        return None
    params = opened(message.params)
    return RpcRequest(message.id, message.method, params, line) if params is not None else None


def opened(raw: Raw | UnsetType) -> dict[str, Any] | None:
    """The object that a part of a message holds; empty if the part is missing, None if it is no object."""
    if raw is UNSET or not bytes(raw):
        return {}
    try:
        value = _json.decode(raw)
    except _UNREADABLE:
        value = _mended(bytes(raw))
    return value if isinstance(value, dict) else None


def _mended(data: bytes) -> Any:
    """JSON with halves of characters or bytes that are no text, read with \ufffd in their place; None if it is none.

    What is passed on untouched keeps its bytes; what a fault changes is written so.
    """
    try:
        return carried(json.loads(data.decode("utf-8", "replace")))
    except _UNREADABLE:
        return None


def result(id: Id, value: Any) -> bytes:
    """An answer that went well."""
    return encode({"jsonrpc": "2.0", "id": id, "result": value})


def error(id: Id | None, code: int, message: str, data: Any = UNSET) -> bytes:
    """An answer that says what went wrong."""
    what = {"code": code, "message": message}
    return encode({"jsonrpc": "2.0", "id": id, "error": what if data is UNSET else {**what, "data": data}})


def cancels(message: RpcMessage) -> Id | None:
    """The id of the request that a notification takes back."""
    if message.method != CANCELLED:
        return None
    named = (opened(message.params) or {}).get("requestId")
    return named if isinstance(named, int | float | str) else None


TOOLS_CHANGED = encode({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
