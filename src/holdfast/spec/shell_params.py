"""Params in a command line that a shell reads: a value is one word of it, whatever is in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.errors import UserError
from holdfast.spec.references import param_text
from holdfast.spec.shell_places import shell_places

_SPECIAL = re.compile(r'([\\"$`])')


def in_command(command: str, params: Mapping[str, Any]) -> str:
    """The command with its `{{ params.x }}` replaced, each quoted as the place where it stands asks for."""
    parts, at = [], 0
    for place in shell_places(command) if "{{" in command else ():
        if place.name not in params:
            continue
        if place.fault:
            raise UserError(place.message, hint=place.hint)
        parts += [command[at : place.start], _quoted(param_text(params[place.name]), place.quote)]
        at = place.end
    return "".join([*parts, command[at:]])


def _quoted(value: str, quote: str) -> str:
    if quote == '"':
        return _SPECIAL.sub(r"\\\1", value)
    inside = value.replace("'", "'\\''")
    return inside if quote else f"'{inside}'"
