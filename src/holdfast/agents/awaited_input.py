"""Whether a program waits for somebody to type: by the last that it printed, and by what it called since."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.model.shorten import shorten
from holdfast.processes.pipes import Sink

_KEPT = 2_000
"""Bytes of the end: a question is shorter."""
_LINES = 4
"""Lines in which an address to sign in at is looked for."""
_CHOICE = re.compile(
    r"[\[(]\s*y(?:es)?\s*/\s*n(?:o)?\b[^\])]*[\])]\s*[:?>]?$"  # [y/N], (yes/no/always)
    r"|\bpress (?:<?enter>?|<?return>?|any key|\w to)\b[^\n]{0,40}$"
    r"|\b(?:do you (?:trust|accept|agree|want to continue|wish to continue)|are you sure|proceed|continue)\b"
    r"[^\n?]{0,80}\?$",
    re.IGNORECASE,
)
"""What asks for an answer, wherever it stands."""
_SIGN_IN = re.compile(
    r"\b(?:sign|log)(?:ging|ing)?[ -]?in\b|\bauthenticat(?!ed)\w+|\bauthori[sz](?!ed)\w+"
    r"|\b(?:device|verification|one-time) code\b",
    re.IGNORECASE,
)
_PLACE = re.compile(r"https?://|\bbrowser\b|\bpaste\b|\bwaiting\b", re.IGNORECASE)
_PROMPT = re.compile(r"[?:>\]❯›»]\s?$")
"""How a line ends that waits for its rest."""
_CODES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


class LastPrinted:
    """The end of what a program printed, on whichever stream, and how much it had called by then."""

    def __init__(self, called: Callable[[], int]) -> None:
        """`called`: a number that grows with every call of the agent's."""
        self._called = called
        self._before = self._then = called()
        self._held = bytearray()

    def and_to(self, sink: Sink) -> Sink:
        """A sink that passes all on to that one."""
        return _Both(self, sink)

    def add(self, data: bytes) -> None:
        self._then = self._called()
        self._held += data[-_KEPT:]
        if len(self._held) > 2 * _KEPT:
            del self._held[:-_KEPT]

    def question(self) -> str:
        """The line that waits for an answer; empty if none does, or if the agent went on to call something."""
        now = self._called()
        if now != self._then:
            return ""
        text = _CODES.sub("", self._held[-_KEPT:].decode("utf-8", "replace"))
        return asked_in(text, anything=now == self._before)


@dataclass(frozen=True)
class _Both:
    first: Sink
    second: Sink

    def add(self, data: bytes) -> None:
        self.first.add(data)
        self.second.add(data)


def asked_in(text: str, *, anything: bool) -> str:
    """The last line, if it asks for something; `anything`: an open line that ends like a prompt does, too."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    last = lines[-1]
    if _CHOICE.search(last):
        return last
    if not anything:
        return ""
    near = " ".join(lines[-_LINES:])
    signs_in = _SIGN_IN.search(near) and _PLACE.search(near)
    open_line = not text.endswith("\n") and _PROMPT.search(last)
    return last if signs_in or open_line else ""


def waits_for(question: str) -> str:
    """What is said of a program that was ended while it waited."""
    last = shorten(question)
    return f"it seems to wait for input: its last line was {last!r}; answer it with agent.dialogue, or a flag"
