"""Provider errors: writes them for `Failed` and `Trouble`, and reads them."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, TypeAlias

from msgspec import Struct

from holdfast.model.completion import ErrorChunk
from holdfast.planes.llm.codecs.loose import as_dict, as_text, dump_json
from holdfast.protocols.fault import Failed

Headers: TypeAlias = tuple[tuple[str, str], ...]


class ErrorReply(Struct, frozen=True):
    """An error reply in a provider's own format."""

    status: int
    headers: Headers
    body: bytes


class ErrorKind(Struct, frozen=True):
    """One kind of error, in each provider's terms."""

    status: int
    openai: tuple[str, str | None]
    """The type and the code."""
    anthropic: str
    google: str


KINDS = {
    "rate_limit": ErrorKind(429, ("requests", "rate_limit_exceeded"), "rate_limit_error", "RESOURCE_EXHAUSTED"),
    "quota": ErrorKind(429, ("insufficient_quota", "insufficient_quota"), "rate_limit_error", "RESOURCE_EXHAUSTED"),
    "overloaded": ErrorKind(503, ("server_error", "server_overloaded"), "overloaded_error", "UNAVAILABLE"),
    "server_error": ErrorKind(500, ("server_error", "server_error"), "api_error", "INTERNAL"),
    "context_length": ErrorKind(
        400, ("invalid_request_error", "context_length_exceeded"), "invalid_request_error", "INVALID_ARGUMENT"
    ),
    "auth": ErrorKind(401, ("invalid_request_error", "invalid_api_key"), "authentication_error", "UNAUTHENTICATED"),
    "permission": ErrorKind(403, ("invalid_request_error", "forbidden"), "permission_error", "PERMISSION_DENIED"),
    "not_found": ErrorKind(404, ("invalid_request_error", "model_not_found"), "not_found_error", "NOT_FOUND"),
    "too_large": ErrorKind(
        413, ("invalid_request_error", "request_too_large"), "request_too_large", "INVALID_ARGUMENT"
    ),
    "timeout": ErrorKind(504, ("server_error", "timeout"), "timeout_error", "DEADLINE_EXCEEDED"),
    "invalid": ErrorKind(400, ("invalid_request_error", None), "invalid_request_error", "INVALID_ARGUMENT"),
}

_BY_STATUS = {401: "auth", 403: "permission", 404: "not_found", 408: "timeout", 413: "too_large", 429: "rate_limit"}
_BY_STATUS |= {503: "overloaded", 504: "timeout", 529: "overloaded"}

_WORDS = {
    ("openai", "quota"): "You exceeded your current quota, please check your plan and billing details.",
    ("openai", "context_length"): "This model's maximum context length is 128000 tokens. However, your messages "
    "resulted in 131072 tokens. Please reduce the length of the messages.",
    ("openai", "overloaded"): "The engine is currently overloaded, please try again later.",
    ("anthropic", "quota"): "This request would exceed your organization's monthly spend limit.",
    ("anthropic", "context_length"): "prompt is too long: 204857 tokens > 200000 maximum",
    ("anthropic", "overloaded"): "Overloaded",
    ("google", "quota"): "You exceeded your current quota, please check your plan and billing details.",
    ("google", "context_length"): "The input token count (1153421) exceeds the maximum number of tokens allowed "
    "(1048576).",
    ("google", "overloaded"): "The model is overloaded. Please try again later.",
    ("ollama", "context_length"): "the input length exceeds the context length",
    ("ollama", "overloaded"): "server busy, please try again. maximum pending requests exceeded",
}
"""The providers' own messages: clients search for these words."""

# An error is recognised by its own word. Words that providers use for several kinds of errors say nothing by
# themselves, except for the two that in practice always mean a rate limit.
_READ = {
    word: name
    for name, kind in KINDS.items()
    for word in (kind.openai[1], kind.anthropic, kind.google)
    if word and word not in ("INVALID_ARGUMENT", "invalid_request_error", "RESOURCE_EXHAUSTED", "rate_limit_error")
} | {"RESOURCE_EXHAUSTED": "rate_limit", "rate_limit_error": "rate_limit"}


def write_error_reply(provider: str, failed: Failed) -> ErrorReply:
    """Return a provider's error reply for a failed call."""
    kind = failed.kind or find_kind(failed.status)
    wait = failed.retry_after_s
    extra: Headers = () if wait is None else (("retry-after", _format_seconds(wait)),)
    if kind == "html":
        status = failed.status or 502
        page = failed.body.encode("utf-8", "replace") if isinstance(failed.body, str) else _render_page(status)
        return ErrorReply(status, (("content-type", "text/html"), *extra), page)
    status = _choose_status(provider, kind, failed.status)
    body = write_error(provider, kind, str(failed), status=status, retry_after_s=wait)
    return ErrorReply(status, (("content-type", "application/json"), *extra), dump_json(body))


def write_error(
    provider: str, kind: str, message: str, *, status: int | None = None, retry_after_s: float | None = None
) -> dict[str, Any]:
    """Return the body of an error, or an error inside a reply that has already begun."""
    known = KINDS.get(kind) or KINDS["server_error"]
    text = _WORDS.get((provider, kind), message)
    if provider == "anthropic":
        return {"type": "error", "error": {"type": known.anthropic, "message": text}}
    if provider == "google":
        return _write_google_error(known, kind, text, status or _choose_status(provider, kind, None), retry_after_s)
    if provider == "ollama":
        return {"error": text}
    type, code = known.openai
    return {"error": {"message": text, "type": type, "param": None, "code": code}}


def read_error(body: Any) -> ErrorChunk:
    """Read an error that a provider sent, from its body, its event or their `error` field."""
    inner = as_dict(body).get("error") or body
    if isinstance(inner, str):
        return ErrorChunk("server_error", inner)
    fields = as_dict(inner)
    words = [as_text(fields.get(key)) for key in ("code", "type", "status")]
    kind = next((_READ[text] for text in words if text in _READ), "server_error")
    return ErrorChunk(kind, as_text(fields.get("message")))


def find_kind(status: int | None) -> str:
    """Return the kind of error that a status alone implies."""
    if status is None or status >= 500:
        return _BY_STATUS.get(status or 500, "server_error")
    return _BY_STATUS.get(status, "invalid")


def _choose_status(provider: str, kind: str, status: int | None) -> int:
    if kind == "overloaded" and status in (None, 503, 529):  # each provider has its own status for this
        return 529 if provider == "anthropic" else 503
    return status or (KINDS.get(kind) or KINDS["server_error"]).status


def _write_google_error(
    known: ErrorKind, kind: str, message: str, status: int, retry_after_s: float | None
) -> dict[str, Any]:
    details: list[dict[str, Any]] = []
    if kind == "quota":
        details.append({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{}]})
    if retry_after_s is not None:
        delay = f"{_format_seconds(retry_after_s)}s"
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    body: dict[str, Any] = {"code": status, "message": message, "status": known.google}
    return {"error": {**body, "details": details} if details else body}


def _format_seconds(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.3f}".rstrip("0")


@cache
def _render_page(status: int) -> bytes:
    """Return the error page of a gateway in front of the provider."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = "Error"
    page = files("holdfast.planes.llm").joinpath("bad_gateway.html").read_text("utf-8")
    return page.format(status=status, reason=reason).encode()
