"""JSON-RPC as used by MCP: reads and writes messages, sends nothing. Pure."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast.model.codec import make_storable

Id: TypeAlias = int | float | str

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SESSION_LOST = -32001
"""The servers' error code for an unknown session. Request timeouts share the code."""
TIMED_OUT = -32001

CALL, LIST, READ, PROMPT = "tools/call", "tools/list", "resources/read", "prompts/get"
INITIALIZE = "initialize"
CANCELLED = "notifications/cancelled"
_VERSION = "io.modelcontextprotocol/protocolVersion"


class RpcMessage(Struct, frozen=True):
    """One message; its parts are decoded on demand."""

    id: Id | UnsetType | None = UNSET
    method: str | None = None
    params: Raw = Raw()
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def is_answer(self) -> bool:
        """Whether it is the answer to a request."""
        return self.method is None and (self.result is not UNSET or self.error is not UNSET)


class RpcRequest(Struct, frozen=True):
    """A request with its parameters."""

    id: Id
    method: str
    params: dict[str, Any]
    raw: bytes

    @property
    def is_stateless(self) -> bool:
        """Whether it states its protocol version: then there is no session, and the server sends nothing on its own."""
        meta = self.params.get("_meta")
        return isinstance(meta, dict) and _VERSION in meta

    def replace_arguments(self, arguments: Any) -> RpcRequest:
        """Return the same call with other arguments."""
        if arguments is self.params.get("arguments"):
            return self
        params = {**self.params, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": self.id, "method": self.method, "params": params}
        return RpcRequest(self.id, self.method, params, encode(message))


class RpcAnswer(Struct, frozen=True):
    """A server's answer, with its original bytes."""

    message: RpcMessage
    raw: bytes


_encoder = msgspec.json.Encoder(enc_hook=str)
_message = msgspec.json.Decoder(RpcMessage)
_json = msgspec.json.Decoder()

encode = _encoder.encode
_UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError)


def read_message(line: bytes) -> RpcMessage | None:
    """Return the message in a line; None if it is not one, or a batch."""
    try:
        return _message.decode(line)
    except _UNREADABLE:
        pass
    try:
        return _message.decode(encode(_repair_json(line)))
    except _UNREADABLE:
        return None


def read_request(message: RpcMessage, line: bytes) -> RpcRequest | None:
    """Return the request in a message; None for a notification, an answer, or parameters that are not an object."""
    if message.method is None or message.id is UNSET or message.id is None:
        return None
    params = read_object(message.params)
    return RpcRequest(message.id, message.method, params, line) if params is not None else None


def read_object(raw: Raw | UnsetType) -> dict[str, Any] | None:
    """Return the object in a part of a message; empty if the part is missing, None if it is not an object."""
    if raw is UNSET or not bytes(raw):
        return {}
    try:
        value = _json.decode(raw)
    except _UNREADABLE:
        value = _repair_json(bytes(raw))
    return value if isinstance(value, dict) else None


def _repair_json(data: bytes) -> Any:
    """Parse JSON with lone surrogates or invalid UTF-8, which become �; return None if it is not JSON.

    A message that is passed on unchanged keeps its bytes; one that a fault changes is written with �.
    """
    try:
        return make_storable(json.loads(data.decode("utf-8", "replace")))
    except _UNREADABLE:
        return None


def write_result(id: Id, value: Any) -> bytes:
    """Return a successful answer."""
    return encode({"jsonrpc": "2.0", "id": id, "result": value})


def write_error(id: Id | None, code: int, message: str, data: Any = UNSET) -> bytes:
    """Return an error answer."""
    what = {"code": code, "message": message}
    return encode({"jsonrpc": "2.0", "id": id, "error": what if data is UNSET else {**what, "data": data}})


def find_cancelled(message: RpcMessage) -> Id | None:
    """Return the id of the request that a notification cancels."""
    if message.method != CANCELLED:
        return None
    request_id = (read_object(message.params) or {}).get("requestId")
    return request_id if isinstance(request_id, int | float | str) else None


TOOLS_CHANGED = encode({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
