"""The positions of references in a shell command: their quotes, and where no value can be inserted. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from holdfast.errors import UserError
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.spec.references import NAMED, format_param

_WORD_ENDS = " \t\n;&|(<>"
_UNSURE = re.compile(r"<<|\$'|\)#")
_PATTERNS = re.compile(r"\bcase\b")
"""Here-documents, quotes with escapes, single parentheses: shells differ, or the rest cannot be parsed."""


class ShellPlace(Struct, frozen=True):
    """A reference to a parameter, by its offsets, with the quote that is open there."""

    start: int
    end: int
    name: str
    quote: str
    fault: str
    """Why no value can be inserted here; empty if one can."""

    @property
    def message(self) -> str:
        return f"{{{{ params.{self.name} }}}} is {self.fault}: no value can be quoted for the shell there"

    @property
    def hint(self) -> str:
        variable = f"$PARAM_{self.name.upper()}"
        return f'write "{variable}" there, a variable of the agent\'s environment, or move the reference out of it'


IN_SETUP_ENV = 'set a variable to it in setup.env and write "$NAME" there, or move the reference out of it'
"""The hint where no PARAM_ variable is available."""


def report_unquotable(reader: Reader, node: Node, command: str, hint: str = "") -> None:
    """Report references to parameters that cannot be quoted at their position in the command."""
    for place in find_shell_places(command) if "{{" in command else ():
        if place.fault:
            reader.report(node, place.message, hint=hint or place.hint, code="unquotable-param")


def find_shell_places(command: str) -> Iterator[ShellPlace]:
    """Yield every `{{ params.x }}` of the command, in order."""
    scan = _ShellScan()
    at = 0
    for match in re.finditer(NAMED, command):
        if match["space"] != "params":
            continue
        scan.read(command[at : match.start()])
        yield ShellPlace(match.start(), match.end(), match["name"], scan.quote, scan.fault)
        scan.skip_value()
        at = match.end()


class _ShellScan:
    """Tracks the quotes, substitutions and comments of a command, character by character."""

    def __init__(self) -> None:
        self._open = [""]
        """What is open, innermost last: a quote, `(` of or within a substitution, a backquote, `{`, `#`."""
        self._before = "\n"
        self._escaped = False
        self._unsure = False

    @property
    def quote(self) -> str:
        return self._open[-1]

    @property
    def fault(self) -> str:
        if self._escaped:
            return "after a backslash"
        if self._before == "$" and self.quote != "'":
            return "after a dollar"
        if "#" in self._open:
            return "in a comment"
        if {"(", "`", "{"} & set(self._open):
            return "inside a substitution"
        return "after a here-document, a case or quotes that cannot be read" if self._unsure else ""

    def skip_value(self) -> None:
        self._before = "x"

    def read(self, text: str) -> None:
        for at, sign in enumerate(text):
            if self._escaped:
                self._escaped = False
                self._before = self._before if sign == "\n" else "x"  # a continued line
                continue
            # Doubt is never taken back: once the scan may have lost count of the quotes, every later position is
            # refused. A wrong guess would let a parameter run as a command.
            self._unsure = self._unsure or self._is_unreadable(text, at)
            self._read_character(sign)
            self._before = self._before if self._escaped else sign

    def _is_unreadable(self, text: str, at: int) -> bool:
        # From here on the scan may have lost count of quotes. A wrong guess would let a parameter run as a command, so
        # every later position is refused.
        if self.quote not in ("", "(", "{"):
            return False
        return bool(_UNSURE.match(text, at) or ("(" in self._open and _PATTERNS.match(text, at)))

    def _read_character(self, sign: str) -> None:
        # The innermost opening decides what a character means. In single quotes and comments only their end counts. In
        # double quotes and backquotes a backslash and a substitution still count. Outside all of them quotes open.
        inner = self.quote
        if inner in ("'", "#"):
            self._close(sign == ("'" if inner == "'" else "\n"))
        elif sign == "\\":
            self._escaped = True
        elif inner == "`":
            self._close(sign == "`")
        elif sign == "`" or (sign in "({" and self._before == "$"):
            self._open.append(sign)
        elif inner == '"':
            self._close(sign == '"')
        else:
            self._read_unquoted(sign, inner)

    def _read_unquoted(self, sign: str, inner: str) -> None:
        """Handle a character outside quotes."""
        if sign in "'\"":
            self._unsure = self._unsure or inner == "{"
            self._open.append(sign)
        elif sign == "#" and inner != "{" and self._before in _WORD_ENDS:
            self._unsure = self._unsure or len(self._open) > 1
            self._open.append(sign)
        elif sign == "(" and inner == "(":
            self._open.append(sign)
        else:
            self._close((inner, sign) in (("(", ")"), ("{", "}")))

    def _close(self, ends: bool) -> None:
        if ends:
            self._open.pop()


_SPECIAL = re.compile(r'([\\"$`])')


def fill_command(command: str, params: Mapping[str, Any]) -> str:
    """Return the command with each `{{ params.x }}` replaced, quoted as its position requires."""
    parts, at = [], 0
    for place in find_shell_places(command) if "{{" in command else ():
        if place.name not in params:
            continue
        if place.fault:
            raise UserError(place.message, code="param-unquotable", hint=place.hint)
        parts += [command[at : place.start], _quote_value(format_param(params[place.name]), place.quote)]
        at = place.end
    return "".join([*parts, command[at:]])


def _quote_value(value: str, quote: str) -> str:
    if quote == '"':
        return _SPECIAL.sub(r"\\\1", value)
    # In single quotes nothing is special except the quote itself, which must be closed, escaped outside and opened
    # again.
    inside = value.replace("'", "'\\''")
    return inside if quote else f"'{inside}'"
