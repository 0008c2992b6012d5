"""The lines of a run's files as records, decoded a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

import msgspec

from holdfast.errors import UserError

MEND_LINE = "someone or the agent changed it: fix or remove the line; --resume runs the missing trials"
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
_BLOCK = 1 << 16
"""Bytes of lines read together, about."""

T = TypeVar("T")


def read_lines(path: Path) -> Iterator[bytes]:
    """Return every complete line; a torn last one is dropped."""
    return (line for _, lines in _read_blocks(path) for line in lines)


def read_records(
    path: Path, decode: Callable[[bytes], T], decode_lines: Callable[[bytes], Sequence[T]]
) -> Iterator[tuple[int, T]]:
    """Yield every record, with the offset of its line; UserError names a line that is not a record."""
    number = 1
    for start, lines in _read_blocks(path):
        starts = accumulate(map(len, lines), initial=start)
        decoded = _decode_block(lines, decode_lines)
        if decoded is not None:
            yield from zip(starts, decoded, strict=False)  # starts has one more entry: where the next block begins
        else:
            yield from zip(starts, _decode_each(lines, decode, path, number), strict=False)
        number += len(lines)


def build_unreadable_error(where: str, broken: Exception, hint: str) -> UserError:
    """Return the error for a position that Holdfast did not write; the user has to fix it."""
    return UserError(f"{where}: not a record of a run: {broken}", hint=hint, code="run-damaged")


def _read_blocks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield blocks of complete lines, each with the offset of its first line."""
    if not path.is_file():  # reading a pipe at this path would never end
        return
    start = 0
    with open(path, "rb") as file:
        while lines := file.readlines(_BLOCK):
            torn = not lines[-1].endswith(b"\n")
            if torn:
                lines.pop()
            if lines:
                yield start, lines
            if torn:  # the writer may have continued since: the rest of that line is not a line
                return
            start += sum(map(len, lines))


def _decode_block(lines: list[bytes], decode_lines: Callable[[bytes], Sequence[T]]) -> Sequence[T] | None:
    """Return the records of the lines, if each is one: Holdfast writes exactly one record per line."""
    block = b"".join(lines)
    ours = block.startswith(b"{") and block.count(b"}\n{") == len(lines) - 1 and block.endswith(b"}\n")
    if not ours:
        return None
    try:
        decoded = decode_lines(block)
    except UNREADABLE:
        return None
    return decoded if len(decoded) == len(lines) else None


def _decode_each(lines: list[bytes], decode: Callable[[bytes], T], path: Path, number: int) -> Iterator[T]:
    for at, line in enumerate(lines, number):
        try:
            yield decode(line)
        except UNREADABLE as broken:
            raise build_unreadable_error(f"{path}:{at}", broken, MEND_LINE) from broken
