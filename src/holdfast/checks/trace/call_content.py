"""The content of recorded calls: arguments compared with expected ones, and results that report an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from holdfast.checks.json_parts import parse
from holdfast.model.trace import TEXT_KEPT, TraceEvent

_CUT = " … "


def has_arguments(written: str, wanted: Mapping[str, Any] | None) -> bool | None:
    """Return whether recorded arguments contain everything that is expected; None if they were shortened."""
    if not wanted:
        return True
    if is_truncated(written):
        return None
    arguments = parse_arguments(written)
    return arguments is not None and all(
        name in arguments and _is_match(arguments[name], value) for name, value in wanted.items()
    )


def is_truncated(written: str) -> bool:
    """Return whether the middle was left out to keep an event small: the rest may still look complete."""
    return len(written) >= TEXT_KEPT - len(_CUT) and _CUT in written


def parse_arguments(written: str) -> dict[str, Any] | None:
    """Return arguments or a body as a mapping; None if it is not a JSON object, or was cut."""
    if is_truncated(written):
        return None
    try:
        return msgspec.json.decode(written, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _is_match(actual: Any, wanted: Any) -> bool:
    """Compare a value: text is a glob, numbers are compared as numbers, any other value must be equal."""
    if isinstance(wanted, str):
        return fnmatchcase(actual if isinstance(actual, str) else msgspec.json.encode(actual).decode(), wanted)
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return actual is wanted
    return bool(actual == wanted)


_ERRORS = ("error", "errors")
_EMPTY = frozenset(("", "none", "null", "nil", "n/a", "false", "no error"))
"""An error field with one of these texts reports none: programs write `str(None)` into it."""
_FLAGS = {"isError": True, "is_error": True, "success": False, "ok": False}
"""A field with this value says that the call failed, whatever else the result contains."""
_FAILED = frozenset(("failed", "failure"))
"""A status that may be the call's, or that of the order or payment in the result."""
_GOES_WITH_ERROR = re.compile(
    r"error|fail|fault|exception|declin|den(y|ied)|reject|refus|invalid|not.?found|missing|unavailable|unknown|abort|cancel"
    r"|time.?d?.?out|exceed|exhaust|expired|unauth|forbidden|conflict|internal|bad|limit|too.?many|block|\b[345]\d\d\b",
    re.IGNORECASE,
)
"""A status with one of these words describes the error. Any other, such as `completed`, contradicts it."""
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
    """Return whether the result has more than an error: `data`, a status or flag of success, or a value of its own."""
    if result.get("ok") is True or result.get("success") is True:
        return True
    if isinstance(result.get("data"), dict | list) and result["data"]:
        return True
    status = result.get("status")
    if isinstance(status, str) and status.strip() and not _GOES_WITH_ERROR.search(status):
        return True
    if isinstance(status, int) and 200 <= status < 300:
        return True
    own = (value for name, value in result.items() if not _ABOUT_ERROR.fullmatch(name) and name not in arguments)
    return any(value is True or (value and value not in arguments.values()) for value in own)
