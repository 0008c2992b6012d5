"""Our ends of one trial in another process: its line and its output pipe."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable

from holdfast.agents.python.hosted_trial import HostedTrial
from holdfast.processes.leftovers import kill_group
from holdfast.processes.pipes import DRAINS, read_now

MESSAGE_LIMIT = 80_000_000
"""Bytes of one message: an answer that was cut fits in, whatever its characters."""


class TrialPipes:
    """What a trial is heard by, from the moment its process is asked for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, hosted: HostedTrial) -> None:
        self._loop = loop
        self._show = hosted
        self._line, self._their_line = socket.socketpair()
        try:
            self._output, self._their_output = os.pipe()
        except OSError:
            self._line.close()
            self._their_line.close()
            raise
        self._given = False
        self._line.setblocking(False)
        os.set_blocking(self._output, False)

    @property
    def theirs(self) -> tuple[int, int]:
        """The ends to hand over: of the line, and of the output."""
        return self._their_line.fileno(), self._their_output

    def listen(self) -> None:
        """Their ends are handed over: from now on whatever comes goes to the show."""
        self.listen_to_output()
        self._loop.add_reader(self._line.fileno(), self._read_line)

    def listen_to_output(self) -> None:
        """What is printed goes to the show; on the line somebody still waits for an answer."""
        self._give()
        self._loop.add_reader(self._output, self._read_output)

    def send_some(self, data: bytes) -> bytes:
        """Sends what fits at once, before anybody listens; the rest."""
        try:
            return data[self._line.send(data) :]
        except BlockingIOError:
            return data

    async def say(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # it died: its exit tells
            await self._loop.sock_sendall(self._line, data)

    async def heard(self) -> bytes:
        """What comes next on the line, before anybody listens; b"" at its end."""
        try:
            return await self._loop.sock_recv(self._line, 1 << 16)
        except OSError:
            return b""

    def drain(self) -> None:
        """Takes what came before the end and was not read yet."""
        _drain(self._line.fileno(), self._show.frames.feed)
        _drain(self._output, self._show.print)

    def close(self) -> None:
        self._give()
        self._loop.remove_reader(self._line.fileno())
        self._loop.remove_reader(self._output)
        self._line.close()
        os.close(self._output)

    def _give(self) -> None:
        if not self._given:
            self._given = True
            self._their_line.close()
            os.close(self._their_output)

    def _read_line(self) -> None:
        hosted, fd = self._show, self._line.fileno()
        data = read_now(fd)
        if data:
            hosted.frames.feed(data)
            if len(hosted.frames) <= MESSAGE_LIMIT:
                return
            hosted.notes.append("the agent's process sent too much and was ended")
            kill_group(hosted.pid, signal.SIGKILL)
        if data is not None:
            self._loop.remove_reader(fd)

    def _read_output(self) -> None:
        data = read_now(self._output)
        if data:
            self._show.print(data)
        elif data is not None:
            self._loop.remove_reader(self._output)


def _drain(fd: int, take: Callable[[bytes], None]) -> None:
    for _ in range(DRAINS):
        data = read_now(fd)
        if not data:
            return
        take(data)
