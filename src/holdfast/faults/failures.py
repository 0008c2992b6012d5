"""Failures as services send them."""

from __future__ import annotations

from http import HTTPStatus

from holdfast.protocols.fault import Failed


def build_failure(status: int, message: str = "", *, retry_after_s: float | None = None, kind: str = "") -> Failed:
    """Return a service's reply with that status; without a message, the usual text for it. `kind` as in Failed."""
    sentence = message or f"{status} {_find_phrase(status)}"
    body = {"error": {"code": status, "message": sentence}}
    return Failed(sentence, status=status, retry_after_s=retry_after_s, body=body, kind=kind)


def _find_phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
