"""The pipes of a started program: what it is given on stdin, and what it prints, in bounded memory."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from holdfast.processes.limits import OUTPUT_KEPT, OUTPUT_LIMIT, output_notes

DRAINS = 512
"""Reads after the end: bounded, as something that was left behind could write for ever."""
_GROUP_END = re.compile(r"\s*\+-+$")
"""How Python ends the traceback of a group of errors."""
_GROUP_RULE = re.compile(r"\s*\+[-+]+")
"""What stands before each error of one."""
_GROUP_LINE = re.compile(r"\s*\| (?!Traceback \()(\S.*)$")
"""An error inside of one: what stands deeper is where it came from."""
_GROUP_FRAME = re.compile(r'\s*\|   File "')

_ERROR = re.compile(r"\b(\w*Error|\w*Exception|error|ERROR|exception|[Ff]atal|FATAL|panic|panicked)\b")
"""What a line says that tells why a program died."""


_BOX = "╭┌┏"
_BOX_SIDE = "│┃"
_BOX_LINES = f" {_BOX}{_BOX_SIDE}╮╰╯┐└┘┓┗┛─━"
"""What command-line libraries draw around an error."""


class Sink(Protocol):
    """Takes what a program prints."""

    def add(self, data: bytes) -> None: ...


class Tail:
    """Keeps the end of what was printed: that is where the traceback is."""

    def __init__(self, kept: int = OUTPUT_KEPT, most: float = OUTPUT_LIMIT) -> None:
        """Of the first `most` bytes, the last `kept`."""
        self._held = bytearray()
        self._kept = kept
        self._most = most
        self._read = 0
        self.watch: Callable[[bytes], None] | None = None
        """Is shown everything as it comes, while somebody waits for a line."""

    def add(self, data: bytes) -> None:
        self._read += len(data)
        if self._read > self._most:
            return
        if self.watch is not None:
            self.watch(data)
        self._held += data
        if len(self._held) > 2 * self._kept:
            del self._held[: len(self._held) - self._kept]

    def restart(self) -> None:
        """Forgets what came so far."""
        self._held.clear()
        self._read = 0

    @property
    def data(self) -> bytes:
        return bytes(self._held[max(0, len(self._held) - self._kept) :])

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @property
    def last_line(self) -> str:
        """The last line with anything on it, of a group of errors the innermost's; empty if there is none."""
        lines = [line for line in reversed(_unboxed(self.text)) if line.strip()]
        if lines and _GROUP_END.match(lines[0]):
            return _innermost(lines[1:]) or lines[0].strip()
        return lines[0].strip() if lines else ""

    @property
    def telling_line(self) -> str:
        """The last line that says error; the last one of all if none does."""
        last = self.last_line
        if _ERROR.search(last):
            return last
        said = (line.strip() for line in reversed(_unboxed(self.text)) if _ERROR.search(line))
        return next((line for line in said if not line.startswith("at ")), last)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know of the output."""
        return output_notes(self._read)


def _unboxed(text: str) -> list[str]:
    """The lines, those of a box as one, its title before it; boxes of tracebacks are left out."""
    lines: list[str] = []
    box: list[str] | None = None
    for line in text.splitlines():
        if line.lstrip()[:1] in (*_BOX,):
            box = [line.strip(_BOX_LINES)]
        elif box is not None and line.lstrip()[:1] in (*_BOX_SIDE,):
            box.append(line.strip(_BOX_LINES))
        elif box is None:
            lines.append(line)
        else:
            lines += [_box_text(box), *([line] if line.strip(_BOX_LINES) else [])]
            box = None
    return lines if box is None else [*lines, _box_text(box)]


def _box_text(rows: list[str]) -> str:
    title, *inside = rows
    return "" if title.startswith("Traceback") else ": ".join(filter(None, (title, " ".join(filter(None, inside)))))


def _innermost(lines: list[str]) -> str:
    """The last error of a group, from its lines in reverse: the first line of what it says, behind its frames."""
    named = ""
    for line in lines:
        if _GROUP_RULE.match(line) or (named and _GROUP_FRAME.match(line)):
            break
        if found := _GROUP_LINE.match(line):
            named = found[1]  # a message of several lines has a bar before each from Python 3.13 on
    return named


class Head:
    """Keeps the beginning of what was printed: that is where an answer is."""

    def __init__(self, limit: int) -> None:
        self._held = bytearray()
        self._limit = limit
        self._stopped = False
        self.cut = False

    def stop(self) -> None:
        """What comes from now on came too late."""
        self._stopped = True

    def add(self, data: bytes) -> None:
        if self._stopped:
            return
        left = self._limit - len(self._held)
        self.cut = self.cut or len(data) > left
        self._held += data[: max(left, 0)]

    @property
    def data(self) -> bytes:
        return bytes(self._held)


class Outlet:
    """One pipe that a program prints to. It is always emptied, so that no program waits for us."""

    def __init__(self, sink: Sink) -> None:
        self._loop = asyncio.get_running_loop()
        self._sink = sink
        self._ours, self.theirs = os.pipe()
        os.set_blocking(self._ours, False)
        self._loop.add_reader(self._ours, self._read)
        self._given = False

    def give(self) -> None:
        """Their end is handed over: ours of it is closed."""
        if not self._given:
            self._given = True
            os.close(self.theirs)

    def drain(self) -> None:
        """Takes what came and was not read yet."""
        drain(self._ours, self._sink.add)

    def close(self) -> None:
        self.give()
        self._loop.remove_reader(self._ours)
        os.close(self._ours)

    def _read(self) -> None:
        data = read_now(self._ours)
        if data:
            self._sink.add(data)
        elif data is not None:
            self._loop.remove_reader(self._ours)


class Inlet:
    """A program's stdin: what it is given, then its end. A program that does not read keeps nobody waiting."""

    def __init__(self, data: bytes) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = memoryview(data)
        self.theirs, self._ours = os.pipe()
        self._given = self._closed = False
        os.set_blocking(self._ours, False)
        self._write()
        if not self._closed:
            self._loop.add_writer(self._ours, self._write)

    def give(self) -> None:
        if not self._given:
            self._given = True
            os.close(self.theirs)

    def close(self) -> None:
        self.give()
        if not self._closed:
            self._closed = True
            self._loop.remove_writer(self._ours)
            os.close(self._ours)

    def _write(self) -> None:
        try:
            while self._left:
                self._left = self._left[os.write(self._ours, self._left) :]
        except BlockingIOError:
            return
        except OSError:  # it has closed its stdin, or ended
            self._left = memoryview(b"")
        self._closed = True
        self._loop.remove_writer(self._ours)
        os.close(self._ours)


class Pipes:
    """All three pipes of a program. Hand over `stdio`, then `give`; `close` after its end."""

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
    def stdio(self) -> tuple[int, int, int]:
        return self._inlet.theirs, self._outlets[0].theirs, self._outlets[-1].theirs

    def started(self, argv: Sequence[str]) -> list[str]:
        """What to execute for a program that is given these."""
        return [*argv]

    def give(self) -> None:
        """Their ends are handed over."""
        self._inlet.give()
        for outlet in self._outlets:
            outlet.give()

    def drain(self) -> None:
        for outlet in self._outlets:
            outlet.drain()

    def close(self) -> None:
        self._inlet.close()
        for outlet in self._outlets:
            outlet.close()


def drain(fd: int, take: Callable[[bytes], None]) -> None:
    """Gives `take` what is there and was not read yet; bounded, as something could write for ever."""
    for _ in range(DRAINS):
        data = read_now(fd)
        if not data:
            return
        take(data)


def read_now(fd: int) -> bytes | None:
    """What is there; b"" at the end; None if nothing is there yet."""
    try:
        return os.read(fd, 1 << 18)
    except BlockingIOError:
        return None
    except OSError:
        return b""
