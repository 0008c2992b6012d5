"""A terminal for a started program: what is expected on it, and what is typed then."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.processes.pipes import Sink, drain, read_now

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
LINE_LIMIT = 4000
"""Bytes of a line that a terminal takes; the rest of a longer one would be lost."""
_OWN = ("/bin/sh", "-c", 'command -v setsid >/dev/null && exec setsid -cw "$@"; exec "$@"', "sh")
"""Makes it the controlling terminal, where the machine has what it takes: passwords are asked for there."""
_ROWS, _COLUMNS = 40, 160
_ENTER = b"\n"
_KEPT = 100_000
"""Of the screen, in characters, while something is expected."""
_SHOWN = 3
"""Lines of the screen in a message."""


@dataclass(frozen=True)
class TypedLine:
    """What is typed once a text was seen."""

    expect: str
    text: str


class Terminal:
    """Both ends of a pseudo-terminal. Hand over `stdio`, then `give`; `close` after the program's end.

    It does not echo: what is typed is not taken for what the program says.
    """

    def __init__(self, lines: Sequence[TypedLine], sinks: Sequence[Sink]) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines = list(lines)
        self._sinks = sinks
        self._screen = PlainScreen()
        self._unread = ""
        """Plain text since the last expectation was met."""
        self._typed = b""
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        settings = termios.tcgetattr(self._theirs)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(self._theirs, termios.TCSANOW, settings)
        os.set_blocking(self._ours, False)
        self._loop.add_reader(self._ours, self._read)
        self._given = False

    @property
    def stdio(self) -> tuple[int, int, int]:
        return self._theirs, self._theirs, self._theirs

    def started(self, argv: Sequence[str]) -> list[str]:
        """What to execute so that it is the program's own terminal."""
        return [*_OWN, *argv]

    @property
    def awaited(self) -> str | None:
        """What is expected and was not seen yet; None: nothing is."""
        return self._lines[0].expect if self._lines else None

    @property
    def last_lines(self) -> str:
        """The last that the program showed, in one line."""
        return " | ".join([line.strip() for line in self._unread.splitlines() if line.strip()][-_SHOWN:])

    def give(self) -> None:
        """Their end is handed over."""
        if not self._given:
            self._given = True
            os.close(self._theirs)

    def drain(self) -> None:
        """Takes what came and was not read yet."""
        drain(self._ours, self._take)
        self._show(self._screen.rest())

    def close(self) -> None:
        self.give()
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        os.close(self._ours)

    def _read(self) -> None:
        data = read_now(self._ours)
        if data:
            self._take(data)
        elif data is not None:  # nobody has it open any more
            self._loop.remove_reader(self._ours)

    def _take(self, data: bytes) -> None:
        self._show(self._screen.plain(data))

    def _show(self, plain: bytes) -> None:
        if not plain:
            return
        for sink in self._sinks:
            sink.add(plain)
        self._unread = (self._unread + plain.decode("utf-8", "replace"))[-_KEPT:]
        self._meet()

    def _meet(self) -> None:
        """Types what is due: each expectation is looked for behind the one before."""
        while self._lines and (at := self._unread.find(self._lines[0].expect)) >= 0:
            line = self._lines.pop(0)
            self._unread = self._unread[at + len(line.expect) :]
            self._typed += line.text.encode() + _ENTER
            self._write()

    def _write(self) -> None:
        self._loop.remove_writer(self._ours)
        try:
            while self._typed:
                self._typed = self._typed[os.write(self._ours, self._typed) :]
        except BlockingIOError:
            self._loop.add_writer(self._ours, self._write)
        except OSError:  # nobody reads it any more
            self._typed = b""


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
