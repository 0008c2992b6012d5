"""A reply of the viewer, and how values become one."""

from __future__ import annotations

import zlib
from typing import Any

from msgspec import Struct

from holdfast.report.page.values import json_bytes

JSON = "application/json; charset=utf-8"
SMALL = 4_096
"""Bytes that are not worth packing."""


class WebReply(Struct, frozen=True):
    """Status, type and body."""

    status: int
    body: bytes
    type: str = JSON
    etag: str = ""
    """Of a file: the browser may keep it, and asks whether it is still the same."""

    def packed(self) -> bytes:
        """The body as gzip has it; equal bodies give equal bytes."""
        press = zlib.compressobj(4, wbits=31)
        return press.compress(self.body) + press.flush()


def as_json(value: Any, status: int = 200) -> WebReply:
    return WebReply(status, json_bytes(value))


def refused(status: int, error: str, hint: str = "") -> WebReply:
    """What is wrong, and what to do next."""
    return as_json({"error": error, "hint": hint}, status)
