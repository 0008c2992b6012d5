"""Turns what a command left behind into a turn. Pure."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.agents.conversation import FoundAnswer, to_text
from holdfast.model.codec import make_encodable
from holdfast.model.shorten import shorten, strip_terminal_codes
from holdfast.processes.pipes import Sink
from holdfast.protocols.world import AnswerContent
from holdfast.reading.json_values import MISSING, Find, parse_json

_END_LIMIT = 2_000
"""Bytes of the end of the output that are searched for a question."""
_LINES = 4
"""Lines that are searched for a sign-in address."""
_CHOICE = re.compile(
    r"[\[(]\s*y(?:es)?\s*/\s*n(?:o)?\b[^\])]*[\])]\s*[:?>]?$"  # [y/N], (yes/no/always)
    r"|\bpress (?:<?enter>?|<?return>?|any key|\w to)\b[^\n]{0,40}$"
    r"|\b(?:do you (?:trust|accept|agree|want to continue|wish to continue)|are you sure|proceed|continue)\b"
    r"[^\n?]{0,80}\?$",
    re.IGNORECASE,
)
"""Text that asks for an answer, anywhere in a line."""
_SIGN_IN = re.compile(
    r"\b(?:sign|log)(?:ging|ing)?[ -]?in\b|\bauthenticat(?!ed)\w+|\bauthori[sz](?!ed)\w+"
    r"|\b(?:device|verification|one-time) code\b",
    re.IGNORECASE,
)
_PLACE = re.compile(r"https?://|\bbrowser\b|\bpaste\b|\bwaiting\b", re.IGNORECASE)
_PROMPT = re.compile(r"[?:>\]❯›»]\s?$")
"""The end of a line that waits for input."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class OutputEnd:
    """The end of a program's output on any stream, and how many calls it had made by then."""

    def __init__(self, called: Callable[[], int]) -> None:
        """`called` is a counter that increases with every call of the agent."""
        self._called = called
        self._before = self._then = called()
        self._pending = bytearray()

    def tee(self, sink: Sink) -> Sink:
        """Return a sink that also passes everything on to another sink."""
        return _TeeSink(self, sink)

    def add(self, data: bytes) -> None:
        self._then = self._called()
        self._pending += data[-_END_LIMIT:]
        if len(self._pending) > 2 * _END_LIMIT:
            del self._pending[:-_END_LIMIT]

    def find_question(self) -> str:
        """Return the line that waits for an answer; empty if none does, or if the agent made a call after it."""
        # A call after the last output means that the agent went on working: its last line was no question.
        now = self._called()
        if now != self._then:
            return ""
        text = _CONTROLS.sub("", strip_terminal_codes(self._pending[-_END_LIMIT:].decode("utf-8", "replace")))
        return find_question_line(text, anything=now == self._before)


@dataclass(frozen=True)
class _TeeSink:
    first: Sink
    second: Sink

    def add(self, data: bytes) -> None:
        self.first.add(data)
        self.second.add(data)


def find_question_line(text: str, *, anything: bool) -> str:
    """Return the last line, if it asks for something; `anything` also accepts an open line that ends like a prompt."""
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


def describe_wait(question: str) -> str:
    """Return the message about a program that was killed while it waited for input."""
    last = shorten(question)
    return f"it seems to wait for input: its last line was {last!r}; answer it with agent.dialogue, or a flag"


TEXT_LIMIT = 1_000_000
"""Maximum number of bytes of an answer."""
JSON_LIMIT = 10_000_000
"""Maximum number of bytes of the output that a path is looked up in."""


class AnswerBytes(NamedTuple):
    """The output that is the answer, as bytes."""

    data: bytes
    cut: bool = False
    missing: str = ""
    """Why there is nothing; the ending is then no_answer."""
    refused: str = ""
    """Why it cannot be used; the ending is then unreadable."""


def read_answer_file(name: str, content: AnswerContent) -> AnswerBytes:
    """Return the content of a command's answer file."""
    missing = f"it did not write {name}" if content.absent else f"{name} is empty"
    return AnswerBytes(content.data, content.cut, missing, content.refused)


@dataclass(frozen=True)
class AnswerReader:
    """Reads answers as the spec says: `find` is its response_path, None to take everything."""

    find: Find | None = None
    path: str = ""

    @property
    def limit(self) -> int:
        """The number of bytes to read."""
        return TEXT_LIMIT if self.find is None else JSON_LIMIT

    def read(self, output: AnswerBytes) -> FoundAnswer:
        """Return the answer; its ending is that of a command that ended normally."""
        if output.refused:
            return FoundAnswer(None, "unreadable", output.refused)
        # A character that the limit has split is left out.
        text = getincrementaldecoder("utf-8")("replace").decode(output.data, not output.cut)
        text = text.removeprefix("\ufeff").rstrip("\r\n")
        if not text:
            return FoundAnswer(None, "no_answer", output.missing or "it printed nothing")
        if self.find is not None:
            return self._select(text, output.cut, self.find)
        return FoundAnswer(text, cut=output.cut)

    def _select(self, text: str, cut: bool, find: Find) -> FoundAnswer:
        whole = _cut(text)
        if cut:
            return whole._replace(ending="unreadable", detail=f"over {JSON_LIMIT // 1_000_000} MB, so it is not read")
        try:
            returned = parse_json(text)
            value: Any = find(returned)
        except ValueError:
            detail = f"the output is not JSON, so there is nothing at {self.path}: {_shorten_start(text)}"
            return whole._replace(ending="unreadable", detail=detail)
        if value is MISSING:
            return whole._replace(ending="unreadable", detail=f"nothing at {self.path}: {_shorten_start(text)}")
        if value is None:
            return FoundAnswer(None, "no_answer", f"null at {self.path}", returned=(returned,))
        answer = to_text(value, unwrap=False)
        found = _cut(make_encodable(answer)) if answer else FoundAnswer(None, "no_answer", f"empty at {self.path}")
        return found._replace(returned=(returned,))


def _cut(text: str) -> FoundAnswer:
    raw = text.encode("utf-8", "replace")
    if len(raw) <= TEXT_LIMIT:
        return FoundAnswer(text)
    return FoundAnswer(raw[:TEXT_LIMIT].decode("utf-8", "ignore"), cut=True)


def _shorten_start(text: str) -> str:
    return shorten(" ".join(text[:800].split()))
