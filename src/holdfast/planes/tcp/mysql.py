"""Reads MySQL and MariaDB connections: text and prepared statements, transactions and queries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from holdfast.planes.tcp import mysql_wire as wire
from holdfast.planes.tcp.wire_reader import StatementRefused, WireMessage, WireReader, WireReplies, Work
from holdfast.sqltext.transaction import TransactionStatement, parse_transaction
from holdfast.streams.connection_end import ConnectionEnd

_LOOKED_AT = 1_024
"""Bytes of a first packet that are examined."""
_PREPARED_KEPT = 5_000
_LAST = 0xFFFFFFFF
"""The id with which MariaDB's clients refer to the last prepared statement."""
_UNKNOWN = TransactionStatement("read", "")


class MysqlStatements:
    """The statements of one connection."""

    def __init__(self) -> None:
        self._prepared: dict[int, TransactionStatement] = {}
        self._last = _UNKNOWN

    def find_statements(self, payload: bytes) -> tuple[TransactionStatement, ...]:
        """Return the statements that a QUERY or an EXECUTE runs."""
        if payload[0] == wire.QUERY:
            return parse_transaction(wire.read_sql(payload), "mysql")
        number = int.from_bytes(payload[1:5], "little")
        return (self._last if number == _LAST else self._prepared.get(number, _UNKNOWN),)

    def prepare(self, payload: bytes) -> Callable[[int], None]:
        """Remember a statement; return the object that will receive its number."""
        statements = parse_transaction(wire.read_sql(payload), "mysql")
        self._last = statements[0] if statements else _UNKNOWN
        return partial(self._set_number, self._last)

    def close(self, payload: bytes) -> None:
        self._prepared.pop(int.from_bytes(payload[1:5], "little"), None)

    def _set_number(self, statement: TransactionStatement, number: int) -> None:
        if len(self._prepared) < _PREPARED_KEPT:
            self._prepared[number] = statement


class MysqlReader(WireReader):
    """A connection to MySQL or MariaDB."""

    HEAD = wire.HEAD

    def _set_up(self) -> None:
        self._replies: MysqlReplies = MysqlReplies(self._transactions)
        self._statements = MysqlStatements()
        self._read_only: StatementRefused | None = None
        """A refusal that is valid for the rest of the transaction."""

    async def _forward_start(self) -> bool:
        hello = await self._read_message()
        if hello is None:
            return False
        tls = wire.wants_tls(hello.body)
        if tls:
            await self._faults.request_tls()
        await self._pass(hello)
        if tls or wire.uses_compression(hello.body):
            self._faults.note_unreadable("it is encrypted" if tls else "it is compressed")
            self._replies.opaque = True
            return False
        return True

    def _read_size(self, head: bytes) -> int:
        return int.from_bytes(head[:3], "little")

    def _read(self, message: WireMessage) -> Work | None:
        payload = message.body
        if message.head[3] != 0:  # the continuation of a command, or data that the server requested
            return None
        match payload[0] if payload else 0:
            case wire.QUERY | wire.EXECUTE:
                before, statements = self._transactions.n, self._statements.find_statements(payload)
                work = Work(statements, self._transactions.add_statements(statements))
                if self._transactions.n != before:
                    self._read_only = None
                return work
            case wire.PREPARE:
                self._replies.expect_answer(wire.PREPARE, self._statements.prepare(payload))
            case wire.CLOSE:
                self._statements.close(payload)
            case command:
                self._replies.expect_answer(command)
                if command in (wire.CHANGE_USER, wire.RESET):
                    self._transactions.reset()
        return None

    async def _handle_work(self, message: WireMessage, work: Work) -> None:
        if self._read_only is not None and any(statement.kind == "write" for statement in work.statements):
            await self._refuse(message, self._read_only)
        else:
            await super()._handle_work(message, work)

    def _expect(self, message: WireMessage) -> None:
        self._replies.expect_answer(wire.QUERY)

    async def _refuse(self, message: WireMessage, refused: StatementRefused) -> None:
        await self._lane.skip(message.rest)
        back = refused.kind == "serialization_failure"
        if back:
            self._replies.expect_answer(wire.QUERY, ours=True)
            self._lane.put(wire.build_query("ROLLBACK"))
            await self._lane.flush()
            await self._replies.wait_answered()
        elif refused.kind == "read_only" and self._transactions.open:
            self._read_only = refused
        self._transactions.fail(rolled_back=back)
        await self._answers.release()
        await self._answers.put(wire.build_error(refused.kind))


async def reject_client(client: ConnectionEnd) -> None:
    """Report "too many connections" to a new client, like the server does."""
    await client.write(wire.build_too_many_error())


class _PendingCommand(NamedTuple):
    command: int
    named: Callable[[int], None] | None = None
    """Receives the number of a prepared statement."""
    ours: bool = False
    """Whether the command is not the client's: then the answer is not for it."""


class MysqlReplies(WireReplies):
    """Reads MySQL's answers."""

    def expect_answer(self, command: int, named: Callable[[int], None] | None = None, *, ours: bool = False) -> None:
        """Record that a command goes to the server, which will answer it."""
        if command not in wire.SILENT:
            self._waiting.append(_PendingCommand(command, named, ours))

    def _scan_messages(self, data: bytes) -> tuple[int, int, list[bytes]]:
        at, size, start = self._passing, len(data), 0
        pieces: list[bytes] = []
        while at + wire.HEAD <= size:
            step = wire.HEAD + (data[at] | data[at + 1] << 8 | data[at + 2] << 16)
            if data[at + 3] == 1 and self._waiting:
                looked_at = at + min(step, _LOOKED_AT)
                if looked_at > size:
                    break
                if not self._read_reply(data[at + wire.HEAD : looked_at]):
                    pieces.append(data[start:at])
                    start = at + step
            at += step
        return at, start, pieces

    def _read_reply(self, payload: bytes) -> bool:
        """Read the first packet of an answer; return whether it is for the client."""
        question = self._waiting.popleft()
        self.last = wire.describe_answer(payload)
        if question.named is not None and payload[:1] == b"\0":
            question.named(int.from_bytes(payload[1:5], "little"))
        elif question.command == wire.QUERY and not self._waiting and not question.ours:
            state = wire.read_status(payload)
            if state is not None:
                self._transactions.autocommit = bool(state & wire.AUTOCOMMIT)
                self._transactions.set_server_state(open=bool(state & wire.IN_TRANSACTION))
        self._moved.set()
        return not question.ours
