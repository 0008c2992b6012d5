"""Whether the result of a call reports an error, although the call itself returned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.checks.json_parts import parse
from holdfast.checks.trace.arguments import parse_arguments
from holdfast.model.trace import TraceEvent

_ERRORS = ("error", "errors")
_EMPTY = frozenset(("", "none", "null", "nil", "n/a", "false", "no error"))
"""An error field with one of these texts reports none: programs write `str(None)` into it."""
_FLAGS = {"isError": True, "is_error": True, "success": False, "ok": False}
"""A field with this value says that the call failed, whatever else the result contains."""
_FAILED = frozenset(("failed", "failure"))
"""A status that may be the call's, or that of the order or payment in the result."""
_ABOUT_ERROR = re.compile(
    "(is_?)?errors?(_.*)?|code|data|details?|description|documentation_url|hint|help|message|msg|ok|path|reason"
    "|request_?id|retry_after|retryable|stack|status(_?code)?|success|timestamp|title|trace(_id|back)?|type",
    re.IGNORECASE,
)
"""Fields that describe an error or the request; any other non-empty field is a result."""


def reports_error(event: TraceEvent) -> bool | None:
    """Return whether the result is an object that reports an error; None if it reports an error and a result, too."""
    if not event.output.lstrip().startswith("{"):
        return False
    try:
        result = parse(event.output)
    except ValueError:
        return False
    status = result.get("status")
    word = status.strip().lower() if isinstance(status, str) else ""
    if word == "error" or any(result.get(name) is value for name, value in _FLAGS.items()):
        return True
    if not any(_is_set(result.get(name)) for name in _ERRORS) and word not in _FAILED:
        return False
    # `{"receipt": "r-1", "error": "mail not sent"}`: the payment was made, the mail was not. The result does not say
    # which of the two a claim is about.
    return None if _has_result(result, parse_arguments(event.input) or {}) else True


def _is_set(error: Any) -> bool:
    return error.strip().lower() not in _EMPTY if isinstance(error, str) else bool(error)


def _has_result(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether the result says more than what went wrong: `data` with content, a success flag, or a value of its own."""
    if result.get("ok") is True or result.get("success") is True:
        return True
    if isinstance(result.get("data"), dict | list) and result["data"]:
        return True
    own = (value for name, value in result.items() if not _ABOUT_ERROR.fullmatch(name) and name not in arguments)
    return any(value not in (None, "", False, 0, [], {}) and value not in arguments.values() for value in own)
