"""The pipes of a started program: its stdin and its output, in bounded memory."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from holdfast.model.shorten import strip_terminal_codes
from holdfast.protocols.sandbox import Stdio

OUTPUT_LIMIT = 64_000_000
"""Maximum number of bytes of output that are read; the rest is discarded."""
OUTPUT_KEPT = 64_000
"""Maximum number of bytes of output that are stored: its end, where the traceback is."""
DRAINS = 512
"""Number of reads after the end: bounded, because a leftover process could write forever."""
_GROUP_END = re.compile(r"\s*\+-+$")
"""The last line of Python's traceback for an exception group."""
_GROUP_RULE = re.compile(r"\s*\+[-+]+")
"""The prefix of each exception in a group."""
_GROUP_LINE = re.compile(r"\s*\| (?!Traceback \()(\S.*)$")
"""An exception inside a group; deeper indentation is its traceback."""
_GROUP_FRAME = re.compile(r'\s*\|   File "')

_ERROR = re.compile(r"\b(\w*Error|\w*Exception|error|ERROR|exception|[Ff]atal|FATAL|panic|panicked)\b")
"""Words of a line that explains why a program died."""


_BOX = "╭┌┏"
_BOX_SIDE = "│┃"
_BOX_LINES = f" {_BOX}{_BOX_SIDE}╮╰╯┐└┘┓┗┛─━"
"""Box characters that command-line libraries draw around an error."""


class Sink(Protocol):
    """Receives the output of a program."""

    def add(self, data: bytes) -> None: ...


class Tail:
    """Keeps the end of the output, where the traceback is."""

    def __init__(self, size: int = OUTPUT_KEPT, most: float = OUTPUT_LIMIT) -> None:
        """Keep the last `size` of the first `most` bytes."""
        self._data = bytearray()
        self._size = size
        self._most = most
        self._read = 0
        self.watch: Callable[[bytes], None] | None = None
        """Receives all output as it arrives, while something waits for a line."""

    def add(self, data: bytes) -> None:
        self._read += len(data)
        if self._read > self._most:
            return
        if self.watch is not None:
            self.watch(data)
        # Cut only at twice the size: then each byte is moved at most once, however small the pieces are.
        self._data += data
        if len(self._data) > 2 * self._size:
            del self._data[: len(self._data) - self._size]

    def restart(self) -> None:
        """Discard the output so far."""
        self._data.clear()
        self._read = 0

    @property
    def data(self) -> bytes:
        return bytes(self._data[max(0, len(self._data) - self._size) :])

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @property
    def last_line(self) -> str:
        """The last line that is not blank, for an exception group that of the innermost exception.

        Empty if there is none.
        """
        lines = [line for line in reversed(_unbox(self.text)) if line.strip()]
        if lines and _GROUP_END.match(lines[0]):
            return _find_innermost_error(lines[1:]) or lines[0].strip()
        return lines[0].strip() if lines else ""

    @property
    def error_line(self) -> str:
        """The last line that mentions an error; otherwise the last line."""
        last = self.last_line
        if _ERROR.search(last):
            return last
        lines = (line.strip() for line in reversed(_unbox(self.text)) if _ERROR.search(line))
        return next((line for line in lines if not line.startswith("at ")), last)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the output for the reader."""
        if self._read > OUTPUT_LIMIT:
            return (f"more than {OUTPUT_LIMIT} bytes were printed; only the first ones were read",)
        if self._read > OUTPUT_KEPT:
            return (f"{self._read} bytes were printed; the last {OUTPUT_KEPT} are kept",)
        return ()


def _unbox(text: str) -> list[str]:
    """Return the lines without terminal codes; a box becomes one line, title first; a traceback's box is left out."""
    # `box` collects the rows of an open box. The first line that is not one of its rows closes it: its lower border, or
    # text after a box that was cut off.
    lines: list[str] = []
    box: list[str] | None = None
    for line in strip_terminal_codes(text).splitlines():
        if line.lstrip()[:1] in (*_BOX,):
            box = [line.strip(_BOX_LINES)]
        elif box is not None and line.lstrip()[:1] in (*_BOX_SIDE,):
            box.append(line.strip(_BOX_LINES))
        elif box is None:
            lines.append(line)
        else:
            lines += [_join_box(box), *([line] if line.strip(_BOX_LINES) else [])]
            box = None
    return lines if box is None else [*lines, _join_box(box)]


def _join_box(rows: list[str]) -> str:
    title, *inside = rows
    return "" if title.startswith("Traceback") else ": ".join(filter(None, (title, " ".join(filter(None, inside)))))


def _find_innermost_error(lines: list[str]) -> str:
    """Return the first message line of a group's last exception; `lines` are in reverse order."""
    message = ""
    for line in lines:
        if _GROUP_RULE.match(line) or (message and _GROUP_FRAME.match(line)):
            break
        if match := _GROUP_LINE.match(line):
            message = match[1]  # from Python 3.13 on each line of a multi-line message has a bar before it
    return message


class Head:
    """Keeps the beginning of the output, where an answer is."""

    def __init__(self, limit: int) -> None:
        self._data = bytearray()
        self._limit = limit
        self._stopped = False
        self.cut = False

    def stop(self) -> None:
        """Ignore later output, which is too late to count."""
        self._stopped = True

    def add(self, data: bytes) -> None:
        if self._stopped:
            return
        room = self._limit - len(self._data)
        self.cut = self.cut or len(data) > room
        self._data += data[: max(room, 0)]

    @property
    def data(self) -> bytes:
        return bytes(self._data)


class Outlet:
    """One output pipe of a program. It is always emptied, so the program never waits for Holdfast."""

    def __init__(self, sink: Sink) -> None:
        self._loop = asyncio.get_running_loop()
        self._sink = sink
        self._own_end, self.child_end = os.pipe()
        os.set_blocking(self._own_end, False)
        self._loop.add_reader(self._own_end, self._read)

    def close_child_end(self) -> None:
        """Close Holdfast's copy of the end that the program now has."""
        self.child_end = close_once(self.child_end)

    def drain(self) -> None:
        """Read what has arrived and was not read yet."""
        drain(self._own_end, self._sink.add)

    def close(self) -> None:
        self.close_child_end()
        self._loop.remove_reader(self._own_end)
        os.close(self._own_end)

    def _read(self) -> None:
        data = read_now(self._own_end)
        if data:
            self._sink.add(data)
        elif data is not None:
            self._loop.remove_reader(self._own_end)


class Inlet:
    """A program's stdin: its input, then the end. A program that does not read it does not block Holdfast."""

    def __init__(self, data: bytes) -> None:
        self._loop = asyncio.get_running_loop()
        self._unwritten = memoryview(data)
        self.child_end, self._own_end = os.pipe()
        self._closed = False
        os.set_blocking(self._own_end, False)
        # Most inputs fit into the pipe and are written immediately; only a longer one needs the loop.
        self._write()
        if not self._closed:
            self._loop.add_writer(self._own_end, self._write)

    def close_child_end(self) -> None:
        self.child_end = close_once(self.child_end)

    def close(self) -> None:
        self.close_child_end()
        if not self._closed:
            self._end()

    def _write(self) -> None:
        try:
            while self._unwritten:
                self._unwritten = self._unwritten[os.write(self._own_end, self._unwritten) :]
        except BlockingIOError:
            return
        except OSError:  # it has closed its stdin, or ended
            self._unwritten = memoryview(b"")
        self._end()

    def _end(self) -> None:
        self._closed = True
        self._loop.remove_writer(self._own_end)
        os.close(self._own_end)


class Pipes:
    """All three pipes of a program. Pass `stdio` on, then call `close_child_ends`; call `close` after its end."""

    def __init__(self, stdin: bytes, stdout: Sink, stderr: Sink) -> None:
        self._inlet = Inlet(stdin)
        self._outlets: list[Outlet] = []
        try:
            for sink in [stdout] if stdout is stderr else [stdout, stderr]:
                self._outlets.append(Outlet(sink))
        except OSError:
            self.close()
            raise

    @property
    def stdio(self) -> Stdio:
        return Stdio(self._inlet.child_end, self._outlets[0].child_end, self._outlets[-1].child_end)

    def wrap_command(self, argv: Sequence[str]) -> list[str]:
        """Return the command to execute for a program with these pipes."""
        return [*argv]

    def close_child_ends(self) -> None:
        """Close Holdfast's copies of the ends that the program now has."""
        self._inlet.close_child_end()
        for outlet in self._outlets:
            outlet.close_child_end()

    def drain(self) -> None:
        for outlet in self._outlets:
            outlet.drain()

    def close(self) -> None:
        self._inlet.close()
        for outlet in self._outlets:
            outlet.close()


def close_once(fd: int) -> int:
    """Close a descriptor unless it is -1; return -1, the mark of a closed one."""
    if fd >= 0:
        os.close(fd)
    return -1


def drain(fd: int, take: Callable[[bytes], object]) -> None:
    """Pass the unread data to `take`; bounded, because something could write forever."""
    for _ in range(DRAINS):
        data = read_now(fd)
        if not data:
            return
        take(data)


def read_now(fd: int) -> bytes | None:
    """Return the available data; b"" at the end; None if there is none yet."""
    try:
        return os.read(fd, 1 << 18)
    except BlockingIOError:
        return None
    except OSError:
        return b""
