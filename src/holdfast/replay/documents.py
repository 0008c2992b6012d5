"""Files of JSON, of JSON lines, or archives of them, within limits: a damaged line is left out by its number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.errors import UserError
from holdfast.replay.foreign_trace import LeftOutTrace
from holdfast.replay.inspect_archive import SIGNATURE, archived

LARGEST = 256 << 20
"""Bytes of a JSON document, or of one line: traces are small, and what is larger is something else."""
_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


class ForeignDocument(Struct, frozen=True):
    """One JSON value of a file."""

    name: str
    """`file.jsonl:3` of a line, else the file's name."""
    value: Any


def documents(path: Path) -> Iterator[ForeignDocument | LeftOutTrace]:
    """The values of a file, each when it is asked for: a file of lines may be larger than memory."""
    try:
        with open(path, "rb") as file:
            packed = file.read(len(SIGNATURE)) == SIGNATURE
            file.seek(0)
            head = file.readline(LARGEST + 1)
            while head and not head.strip():
                head = file.readline(LARGEST + 1)
            rest = file.read(1) if head.endswith(b"\n") else b""
    except OSError as refused:
        raise UserError(f"cannot read {path}: {refused.strerror}") from refused
    if packed:
        for one in archived(path):
            yield one if isinstance(one, LeftOutTrace) else ForeignDocument(*one)
        return
    if not head.strip():
        raise UserError(f"{path} is empty", hint="name a file of traces")
    by_line = bool(rest) and (_decodes(head) or _is_lines(path))
    yield from _lines(path) if by_line else [_whole(path)]


def _decodes(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except _UNREADABLE:
        return False
    return True


def _is_lines(path: Path) -> bool:
    return path.suffix in (".jsonl", ".ndjson")


def _whole(path: Path) -> ForeignDocument:
    size = path.stat().st_size
    if size > LARGEST:
        hint = "export fewer traces, or one JSON object a line (.jsonl)"
        raise UserError(f"{path} is {size >> 20} MB, and one JSON document: more than {LARGEST >> 20} MB", hint=hint)
    data = path.read_bytes()
    try:
        return ForeignDocument(path.name, msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf")))
    except RecursionError as deep:
        raise UserError(f"{path}: the JSON is nested too deeply to be read") from deep
    except (msgspec.DecodeError, ValueError) as broken:
        hint = "traces are JSON or JSON lines; a session of Holdfast may be YAML, and needs no import"
        raise UserError(f"{path}: not readable as JSON: {broken}", hint=hint) from broken


def _lines(path: Path) -> Iterator[ForeignDocument | LeftOutTrace]:
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(LARGEST + 1):
            number += 1
            name = f"{path.name}:{number}"
            if len(line) > LARGEST:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LARGEST)
                yield LeftOutTrace(name, f"the line is longer than {LARGEST >> 20} MB")
            elif line.strip():
                yield _line(name, line)


def _line(name: str, line: bytes) -> ForeignDocument | LeftOutTrace:
    try:
        return ForeignDocument(name, msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf")))
    except RecursionError:
        return LeftOutTrace(name, "the JSON is nested too deeply to be read")
    except _UNREADABLE as broken:
        return LeftOutTrace(name, f"not readable as JSON: {broken}")
