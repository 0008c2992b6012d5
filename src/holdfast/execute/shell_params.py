"""Params in a command line that a shell reads: a value is one word of it, whatever is in it. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from holdfast.spec.references import REFERENCE, interpolate

_SPECIAL = re.compile(r'([\\"$`])')


def in_command(command: str, params: Mapping[str, Any]) -> str:
    """The command with its `{{ params.x }}` replaced, each quoted as the place where it stands asks for."""
    parts, at, quote = [], 0, ""
    for reference in re.finditer(REFERENCE, command):
        before, value = command[at : reference.start()], interpolate(reference[0], params)
        quote = _open_quote(before, quote)
        parts += [before, value if value == reference[0] else _quoted(value, quote)]
        at = reference.end()
    return "".join([*parts, command[at:]])


def _open_quote(text: str, quote: str) -> str:
    """The quote that is open after the text, if it began with this one open."""
    escaped = False
    for sign in text:
        if escaped:
            escaped = False
        elif sign == "\\" and quote != "'":
            escaped = True
        elif sign == quote:
            quote = ""
        elif sign in "'\"" and not quote:
            quote = sign
    return quote


def _quoted(value: str, quote: str) -> str:
    if quote == '"':
        return _SPECIAL.sub(r"\\\1", value)
    return value.replace("'", "'\\''") if quote else shlex.quote(value)
