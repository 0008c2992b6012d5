"""A terminal for a started program: waits for expected text and types the replies."""

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

from holdfast.processes.pipes import Sink, close_once, drain, read_now
from holdfast.protocols.sandbox import Stdio

_CODES = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    rb"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"  # titles, links
    rb"|\x1b[ -/]*[0-~]"
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]",
    re.DOTALL,
)
_BROKEN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?$|\r+$")
"""An incomplete control code at the end of the data, or a return that a newline may follow."""
_LONGEST = 4096
"""Maximum length of a control code."""
LINE_LIMIT = 4000
"""Maximum number of bytes of a line on a terminal; the rest would be lost."""
_OWN = ("/bin/sh", "-c", 'command -v setsid >/dev/null && exec setsid -cw "$@"; exec "$@"', "sh")
"""Makes it the controlling terminal if the machine supports that: programs ask for passwords there."""
_ROWS, _COLUMNS = 40, 160
_ENTER = b"\n"
_KEPT = 100_000
"""Characters of the screen that are stored while a text is expected."""
_SHOWN = 3
"""Lines of the screen in a message."""


@dataclass(frozen=True)
class TypedLine:
    """A line to type once a text appears."""

    expect: str
    text: str


class Terminal:
    """Both ends of a pseudo-terminal. Pass `stdio` on, then call `close_child_ends`; call `close` at the program's end.

    It does not echo, so typed text is not mistaken for output.
    """

    def __init__(self, lines: Sequence[TypedLine], sinks: Sequence[Sink]) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines = list(lines)
        self._sinks = sinks
        self._screen = PlainScreen()
        self._unread = ""
        """Plain text since the last expected text."""
        self._typed = b""
        self._own_end, self._program_end = pty.openpty()
        fcntl.ioctl(self._program_end, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        settings = termios.tcgetattr(self._program_end)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(self._program_end, termios.TCSANOW, settings)
        os.set_blocking(self._own_end, False)
        self._loop.add_reader(self._own_end, self._read)

    @property
    def stdio(self) -> Stdio:
        return Stdio(*[self._program_end] * 3)

    def wrap_command(self, argv: Sequence[str]) -> list[str]:
        """Return the command to execute so that this is the program's own terminal."""
        return [*_OWN, *argv]

    @property
    def awaited(self) -> str | None:
        """The text that is expected next; None if nothing is."""
        return self._lines[0].expect if self._lines else None

    @property
    def last_lines(self) -> str:
        """The last lines on the screen, joined into one."""
        return " | ".join([line.strip() for line in self._unread.splitlines() if line.strip()][-_SHOWN:])

    def close_child_ends(self) -> None:
        """Close Holdfast's copy of the end that the program now has."""
        self._program_end = close_once(self._program_end)

    def drain(self) -> None:
        """Read what has arrived and was not read yet."""
        drain(self._own_end, self._receive)
        self._show(self._screen.flush())

    def close(self) -> None:
        self.close_child_ends()
        self._loop.remove_reader(self._own_end)
        self._loop.remove_writer(self._own_end)
        os.close(self._own_end)

    def _read(self) -> None:
        data = read_now(self._own_end)
        if data:
            self._receive(data)
        elif data is not None:  # nobody has it open any more
            self._loop.remove_reader(self._own_end)

    def _receive(self, data: bytes) -> None:
        self._show(self._screen.strip_codes(data))

    def _show(self, plain: bytes) -> None:
        if not plain:
            return
        for sink in self._sinks:
            sink.add(plain)
        self._unread = (self._unread + plain.decode("utf-8", "replace"))[-_KEPT:]
        self._type_replies()

    def _type_replies(self) -> None:
        """Type all due replies: each expected text is searched after the one before."""
        # The text up to an expected one is used up, so that the same words on the screen do not trigger two replies.
        while self._lines and (at := self._unread.find(self._lines[0].expect)) >= 0:
            line = self._lines.pop(0)
            self._unread = self._unread[at + len(line.expect) :]
            self._typed += line.text.encode() + _ENTER
            self._write()

    def _write(self) -> None:
        self._loop.remove_writer(self._own_end)
        try:
            while self._typed:
                self._typed = self._typed[os.write(self._own_end, self._typed) :]
        except BlockingIOError:
            self._loop.add_writer(self._own_end, self._write)
        except OSError:  # nobody reads it any more
            self._typed = b""


class PlainScreen:
    """Turns a terminal's bytes, in any pieces, into plain text."""

    def __init__(self) -> None:
        self._pending = b""

    def strip_codes(self, data: bytes) -> bytes:
        """Return the text of these bytes and of those held back before."""
        # A control code may be split between two reads. What may be the beginning of one is held back until the rest
        # arrives; what is longer than any code is text after all.
        data = self._pending + data
        broken = _BROKEN.search(data)
        cut = len(data) if broken is None or len(data) - broken.start() > _LONGEST else broken.start()
        self._pending = data[cut:]
        # A return without a newline: the line before it stays as a separate line.
        return re.sub(rb"\r+\n|\r+", b"\n", _CODES.sub(b"", data[:cut]))

    def flush(self) -> bytes:
        """Return the pending bytes when nothing more arrives."""
        rest, self._pending = self._pending, b""
        return b"\n" if rest.startswith(b"\r") else b""
