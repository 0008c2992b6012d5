"""What a program shows on a terminal, as plain text: without colours, cursor movements and other codes. Pure."""

from __future__ import annotations

import re

_CODES = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    rb"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"  # titles, links
    rb"|\x1b[ -/]*[0-~]"
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]",
    re.DOTALL,
)
_BROKEN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?$|\r+$")
"""At the end of what came: a code whose rest is still to come, or a return that a new line may follow."""
_LONGEST = 4096
"""A code that is longer is none."""


class PlainScreen:
    """Takes bytes as they come, in any pieces."""

    def __init__(self) -> None:
        self._held = b""

    def plain(self, data: bytes) -> bytes:
        """The text of these bytes and of what was held back."""
        data = self._held + data
        broken = _BROKEN.search(data)
        cut = len(data) if broken is None or len(data) - broken.start() > _LONGEST else broken.start()
        self._held = data[cut:]
        return _cleaned(data[:cut])

    def rest(self) -> bytes:
        """What is left when nothing more comes."""
        held, self._held = self._held, b""
        return b"\n" if held.startswith(b"\r") else b""


def _cleaned(data: bytes) -> bytes:
    """A return without a new line begins a line anew: what stood there before stays, on a line of its own."""
    return re.sub(rb"\r+\n|\r+", b"\n", _CODES.sub(b"", data))
