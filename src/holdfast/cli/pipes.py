"""Standard output as it may be: a pipe whose reader has gone, or closed from the start."""

from __future__ import annotations

import os
from typing import Any, TextIO


class Forgiving:
    """A text stream that goes on into nothing when it cannot be written: `| head -1` must not change the verdict."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure = ""
        """Why what was written did not arrive; a reader that left is no failure."""

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as refused:
            self._let_go(refused)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as refused:
            self._let_go(refused)

    def _let_go(self, refused: OSError) -> None:
        if not isinstance(refused, BrokenPipeError):
            self.failure = refused.strerror or str(refused)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def forgive(stream: TextIO | None) -> Forgiving:
    """The stream, forgiving; one that was closed leads to nothing."""
    if isinstance(stream, Forgiving):
        return stream
    if stream is None:
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open as long as the process
    return Forgiving(stream)
