"""Reads MySQL and MariaDB connections: packets, text and prepared statements, transactions and queries."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from holdfast.planes.tcp.transactions import StatementRefused, TransactionState
from holdfast.planes.tcp.wire_reader import WireMessage, WireReader, WireReplies, Work
from holdfast.sqltext.transaction import TransactionStatement, parse_transaction
from holdfast.streams.connection_end import ConnectionEnd

_HEAD = 4


class MysqlCommand(IntEnum):
    """The commands of a client that matter here."""

    QUIT = 0x01
    QUERY = 0x03
    CHANGE_USER = 0x11
    PREPARE = 0x16
    EXECUTE = 0x17
    LONG_DATA = 0x18
    CLOSE = 0x19
    RESET = 0x1F


SILENT = (MysqlCommand.QUIT, MysqlCommand.LONG_DATA, MysqlCommand.CLOSE)
"""Commands without an answer."""

_COMPRESS, _TLS, _ZSTD = 1 << 5, 1 << 11, 1 << 26
_TLS_REQUEST = 32
"""Length of a first packet that only requests TLS."""
IN_TRANSACTION, AUTOCOMMIT = 1, 2

CODES = {
    "serialization_failure": (1213, "40001", "Deadlock found when trying to get lock; try restarting transaction"),
    "lock_timeout": (1205, "HY000", "Lock wait timeout exceeded; try restarting transaction"),
    "read_only": (
        1290,
        "HY000",
        "The MariaDB server is running with the --read-only option so it cannot execute this statement",
    ),
}


def build_packet(payload: bytes, number: int) -> bytes:
    """Return a packet with its head."""
    return struct.pack("<I", len(payload))[:3] + bytes((number,)) + payload


def build_error(kind: str) -> bytes:
    """Return the server's rejection of a command."""
    code, state, text = CODES[kind]
    return build_packet(b"\xff" + struct.pack("<H", code) + b"#" + state.encode() + text.encode(), 1)


def build_query(sql: str) -> bytes:
    """Return a command from Holdfast."""
    return build_packet(bytes((MysqlCommand.QUERY,)) + sql.encode(), 0)


def read_sql(payload: bytes) -> str:
    """Return the SQL of a query; newer clients put an empty list of attributes before it."""
    return payload[1:].lstrip(b"\0\1").decode("utf-8", "replace")


def read_status(payload: bytes) -> int | None:
    """Return the server's state, if this is an OK packet."""
    if payload[:1] != b"\0":
        return None
    at = _skip_number(payload, _skip_number(payload, 1))
    raw = payload[at : at + 2]
    return int.from_bytes(raw, "little") if len(raw) == 2 else None


def describe_answer(payload: bytes) -> str:
    """Return a short description of an answer."""
    if payload[:1] == b"\xff":
        code = int.from_bytes(payload[1:3], "little")
        return f"error {code}: {payload[9:].decode('utf-8', 'replace')}"
    return "OK" if payload[:1] == b"\0" else "rows"


def _skip_number(payload: bytes, at: int) -> int:
    """Return where a length-encoded number ends."""
    first = payload[at] if at < len(payload) else 0
    return at + {0xFC: 3, 0xFD: 4, 0xFE: 9}.get(first, 1)


_EXAMINED = 1_024
"""Bytes of a first packet that are examined."""
_PREPARED_KEPT = 5_000
_LAST = 0xFFFFFFFF
"""The id with which MariaDB's clients refer to the last prepared statement."""
_UNKNOWN = TransactionStatement("read", "")


class MysqlReader(WireReader):
    """A connection to MySQL or MariaDB."""

    HEAD = _HEAD
    SIZE = (slice(3), "little", 0)

    @staticmethod
    async def reject_client(client: ConnectionEnd) -> None:
        # A full server sends this instead of a greeting; it has no SQL state yet.
        await client.write(build_packet(b"\xff" + struct.pack("<H", 1040) + b"Too many connections", 0))

    def _set_up(self) -> None:
        self._replies: MysqlReplies = MysqlReplies(self._transactions)
        self._last_prepared = _UNKNOWN
        self._read_only: StatementRefused | None = None
        """A refusal that is valid for the rest of the transaction."""

    async def _forward_start(self) -> bool:
        hello = await self._read_message()
        if hello is None:
            return False
        flags = int.from_bytes(hello.body[:4], "little")
        tls = len(hello.body) == _TLS_REQUEST and bool(flags & _TLS)
        if tls:
            await self._faults.request_tls()
        await self._pass(hello)
        if tls or flags & (_COMPRESS | _ZSTD):
            self._faults.note_unreadable("it is encrypted" if tls else "it is compressed")
            self._replies.opaque = True
            return False
        return True

    def _read(self, message: WireMessage) -> Work | None:
        payload = message.body
        if message.head[3] != 0:  # the continuation of a command, or data that the server requested
            return None
        match payload[0] if payload else 0:
            case MysqlCommand.QUERY | MysqlCommand.EXECUTE:
                before, statements = self._transactions.n, self._find_statements(payload)
                work = Work(statements, self._transactions.add_statements(statements))
                if self._transactions.n != before:
                    self._read_only = None
                return work
            case MysqlCommand.PREPARE:
                statements = parse_transaction(read_sql(payload), "mysql")
                self._last_prepared = statements[0] if statements else _UNKNOWN
                self._replies.expect_answer(MysqlCommand.PREPARE, self._last_prepared)
            case MysqlCommand.CLOSE:
                self._replies.prepared.pop(int.from_bytes(payload[1:5], "little"), None)
            case command:
                self._replies.expect_answer(command)
                if command in (MysqlCommand.CHANGE_USER, MysqlCommand.RESET):
                    self._transactions.reset()
        return None

    def _find_statements(self, payload: bytes) -> tuple[TransactionStatement, ...]:
        """Return the statements that a QUERY or an EXECUTE runs."""
        if payload[0] == MysqlCommand.QUERY:
            return parse_transaction(read_sql(payload), "mysql")
        number = int.from_bytes(payload[1:5], "little")
        return (self._last_prepared if number == _LAST else self._replies.prepared.get(number, _UNKNOWN),)

    async def _handle_work(self, message: WireMessage, work: Work) -> None:
        if self._read_only is not None and any(statement.kind == "write" for statement in work.statements):
            await self._refuse(message, self._read_only)
        else:
            await super()._handle_work(message, work)

    def _expect(self, message: WireMessage) -> None:
        self._replies.expect_answer(MysqlCommand.QUERY)

    async def _refuse(self, message: WireMessage, refused: StatementRefused) -> None:
        await self._requests.skip(message.rest)
        rolls_back = refused.kind == "serialization_failure"
        # A deadlock rolls the whole transaction back; the other errors leave it open, as the real server does. A client
        # that sends COMMIT afterwards must see the difference.
        if rolls_back:
            self._replies.expect_answer(MysqlCommand.QUERY, ours=True)
            self._requests.put(build_query("ROLLBACK"))
            await self._requests.flush()
            await self._replies.wait_answered()
        elif refused.kind == "read_only" and self._transactions.open:
            self._read_only = refused
        self._transactions.fail(rolled_back=rolls_back)
        await self._answers.release()
        await self._answers.put(build_error(refused.kind))


class _PendingCommand(NamedTuple):
    command: int
    statement: TransactionStatement | None = None
    """The statement that it prepares; the answer contains its number."""
    ours: bool = False
    """Whether the command is not the client's: then the answer is not for it."""


class MysqlReplies(WireReplies):
    """Reads MySQL's answers."""

    def __init__(self, transactions: TransactionState) -> None:
        super().__init__(transactions)
        self.prepared: dict[int, TransactionStatement] = {}
        """The prepared statements by number."""

    def expect_answer(self, command: int, statement: TransactionStatement | None = None, *, ours: bool = False) -> None:
        """Record that a command goes to the server, which will answer it."""
        if command not in SILENT:
            self._waiting.append(_PendingCommand(command, statement, ours))

    def _scan_messages(self, data: bytes) -> tuple[int, int, list[bytes]]:
        at, size, start = self._passing, len(data), 0
        pieces: list[bytes] = []
        while at + _HEAD <= size:
            step = _HEAD + (data[at] | data[at + 1] << 8 | data[at + 2] << 16)
            if data[at + 3] == 1 and self._waiting:
                examined_end = at + min(step, _EXAMINED)
                if examined_end > size:
                    break
                if not self._read_reply(data[at + _HEAD : examined_end]):
                    pieces.append(data[start:at])
                    start = at + step
            at += step
        return at, start, pieces

    def _read_reply(self, payload: bytes) -> bool:
        """Read the first packet of an answer; return whether it is for the client."""
        question = self._waiting.popleft()
        self.last = describe_answer(payload)
        if question.statement is not None and payload[:1] == b"\0":
            if len(self.prepared) < _PREPARED_KEPT:
                self.prepared[int.from_bytes(payload[1:5], "little")] = question.statement
        elif question.command == MysqlCommand.QUERY and not self._waiting and not question.ours:
            state = read_status(payload)
            if state is not None:
                self._transactions.autocommit = bool(state & AUTOCOMMIT)
                self._transactions.set_server_state(open=bool(state & IN_TRANSACTION))
        self._moved.set()
        return not question.ours
