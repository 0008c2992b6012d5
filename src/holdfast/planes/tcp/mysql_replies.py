"""MySQL's answers: the first packet of each one, which says how it went and what it left of the transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holdfast.planes.tcp import mysql_wire as wire
from holdfast.planes.tcp.wire_reader import WireReplies

_LOOKED_AT = 1_024
"""Bytes of a first packet that are looked at."""


class _PendingCommand(NamedTuple):
    command: int
    named: Callable[[int], None] | None = None
    """Told the number of a prepared statement."""
    ours: bool = False
    """Not the client's: the answer is not for it."""


class MysqlReplies(WireReplies):
    """Reads what MySQL says."""

    def asked(self, command: int, named: Callable[[int], None] | None = None, *, ours: bool = False) -> None:
        """A command goes to the server."""
        if command not in wire.SILENT:
            self._waiting.append(_PendingCommand(command, named, ours))

    def _messages(self, data: bytes) -> tuple[int, int, list[bytes]]:
        at, size, start = self._passing, len(data), 0
        kept: list[bytes] = []
        while at + wire.HEAD <= size:
            step = wire.HEAD + (data[at] | data[at + 1] << 8 | data[at + 2] << 16)
            if data[at + 3] == 1 and self._waiting:
                looked_at = at + min(step, _LOOKED_AT)
                if looked_at > size:
                    break
                if not self._reply(data[at + wire.HEAD : looked_at]):
                    kept.append(data[start:at])
                    start = at + step
            at += step
        return at, start, kept

    def _reply(self, payload: bytes) -> bool:
        """The first packet of an answer."""
        asked = self._waiting.popleft()
        self.last = wire.told(payload)
        if asked.named is not None and payload[:1] == b"\0":
            asked.named(int.from_bytes(payload[1:5], "little"))
        elif asked.command == wire.QUERY and not self._waiting and not asked.ours:
            state = wire.status(payload)
            if state is not None:
                self._transactions.autocommit = bool(state & wire.AUTOCOMMIT)
                self._transactions.told(open=bool(state & wire.IN_TRANSACTION))
        self._moved.set()
        return not asked.ours
