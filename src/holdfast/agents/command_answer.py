"""From what a command left behind to the turn it amounts to. Pure."""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.agents.http_path import text_of
from holdfast.model.codec import encodable
from holdfast.model.observation import EndingKind, Turn
from holdfast.model.shorten import shorten
from holdfast.processes.program import how_it_ended
from holdfast.protocols.world import Left
from holdfast.reading.deep_json import loads
from holdfast.reading.json_path import MISSING, Find

TEXT_KEPT = 1_000_000
"""Bytes of an answer that are kept."""
JSON_READ = 10_000_000
"""Bytes that are kept of what a path is looked up in."""


class Print(NamedTuple):
    """What is taken for the answer, as bytes."""

    data: bytes
    cut: bool = False
    missing: str = ""
    """Why there is nothing; then the ending is no_answer."""
    refused: str = ""
    """Why it cannot be used; then the ending is unreadable."""


def from_file(name: str, left: Left) -> Print:
    """What a command left in its answer file."""
    missing = f"it wrote no {name}" if left.absent else f"{name} is empty"
    return Print(left.data, left.cut, missing, left.refused)


class _Said(NamedTuple):
    text: str | None
    ending: EndingKind = "answered"
    detail: str = ""
    cut: bool = False


@dataclass(frozen=True)
class AnswerReader:
    """Reads answers as the spec says: `find` is its response_path, None to take all there is."""

    find: Find | None = None
    path: str = ""

    @property
    def limit(self) -> int:
        """How many bytes it needs to see."""
        return TEXT_KEPT if self.find is None else JSON_READ

    def ended(self, asked: str, left: Print, status: int | None, took_ms: float, why: str) -> Turn:
        """The turn of a command that ended by itself."""
        said = self._said(left)
        if status == 0:
            return Turn(asked, said.text, took_ms, said.ending, said.detail, cut=said.cut)
        detail = _death(status) + (f": {shorten(why)}" if why else "")
        return Turn(asked, said.text, took_ms, "crashed", detail, cut=said.cut)

    def starved(self, asked: str, left: Print, took_ms: float, why: str) -> Turn:
        """The turn of a command that the system ended for the memory that it used."""
        said = self._said(left)
        return Turn(asked, said.text, took_ms, "out_of_memory", f"it {why}", cut=said.cut)

    def overdue(self, asked: str, left: Print, timeout_ms: float) -> Turn:
        """The turn of a command that we had to end."""
        said = self._said(left)
        return Turn(asked, said.text, timeout_ms, "timeout", f"no answer within {timeout_ms:g} ms", cut=said.cut)

    def _said(self, left: Print) -> _Said:
        if left.refused:
            return _Said(None, "unreadable", left.refused)
        text = _decoded(left).removeprefix("\ufeff").rstrip("\r\n")
        if not text:
            return _Said(None, "no_answer", left.missing or "it printed nothing")
        if self.find is not None:
            return self._found(text, left.cut, self.find)
        return _Said(text, cut=left.cut)

    def _found(self, text: str, cut: bool, find: Find) -> _Said:
        whole = _kept(text)
        if cut:
            return whole._replace(ending="unreadable", detail=f"over {JSON_READ // 1_000_000} MB, so it is not read")
        try:
            found: Any = find(loads(text))
        except ValueError:
            detail = f"it is not JSON, so nothing is at {self.path}: {_start(text)}"
            return whole._replace(ending="unreadable", detail=detail)
        if found is MISSING:
            return whole._replace(ending="unreadable", detail=f"nothing at {self.path}: {_start(text)}")
        if found is None:
            return _Said(None, "no_answer", f"null at {self.path}")
        answer = text_of(found, unwrap=False)
        return _kept(encodable(answer)) if answer else _Said(None, "no_answer", f"empty at {self.path}")


def _decoded(left: Print) -> str:
    """As text; where our limit went through a character, that one is left out."""
    return getincrementaldecoder("utf-8")("replace").decode(left.data, not left.cut)


def _kept(text: str) -> _Said:
    raw = text.encode("utf-8", "replace")
    if len(raw) <= TEXT_KEPT:
        return _Said(text)
    return _Said(raw[:TEXT_KEPT].decode("utf-8", "ignore"), cut=True)


def _death(status: int | None) -> str:
    if status is not None and os.WIFEXITED(status):
        return f"exit code {os.WEXITSTATUS(status)}"
    return f"it {how_it_ended(status)}"


def _start(text: str) -> str:
    return shorten(" ".join(text[:800].split()))
