"""Failures as services send them."""

from __future__ import annotations

from http import HTTPStatus

from holdfast.protocols.fault import Failed

_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def build_failure(status: int, message: str = "", *, retry_after_s: float | None = None, kind: str = "") -> Failed:
    """Return a service's reply with that status; without a message, the usual text for it. `kind` as in Failed."""
    sentence = message or f"{status} {_PHRASES.get(status, 'Error')}"
    body = {"error": {"code": status, "message": sentence}}
    return Failed(sentence, status=status, retry_after_s=retry_after_s, body=body, kind=kind)
