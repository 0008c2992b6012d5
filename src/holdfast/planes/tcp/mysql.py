"""MySQL and MariaDB read along: text and prepared statements; who is in a transaction, and what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.planes.tcp import mysql_wire as wire
from holdfast.planes.tcp.client_frames import LIMIT
from holdfast.planes.tcp.connection_end import ConnectionEnd
from holdfast.planes.tcp.message_batch import MessageBatch
from holdfast.planes.tcp.mysql_replies import MysqlReplies
from holdfast.planes.tcp.mysql_statements import MysqlStatements
from holdfast.planes.tcp.sinks import ByteSink
from holdfast.planes.tcp.transaction_state import TransactionState
from holdfast.planes.tcp.wire_reader import Answers, Faulty, StatementRefused, listen
from holdfast.protocols import Reply
from holdfast.sqltext.transaction import TransactionStatement


class _Packet(NamedTuple):
    data: bytes
    """As it came, head and all; of a long one the beginning."""
    number: int
    rest: int

    @property
    def payload(self) -> bytes:
        return self.data[wire.HEAD :]


class MysqlReader:
    """One connection, client to server (`up`) and back (`down`)."""

    def __init__(
        self, client: ConnectionEnd, server: ConnectionEnd, to_client: ByteSink, to_server: ByteSink, faults: Faulty
    ) -> None:
        self._server = server
        self._to_client = to_client
        self._faults = faults
        self._lane = MessageBatch(client.read, to_server)
        self._transactions = TransactionState(faults.begin, faults.end)
        self._replies = MysqlReplies(self._transactions)
        self._answers = Answers(to_client.write)
        self._statements = MysqlStatements()
        self._read_only: StatementRefused | None = None
        """A refusal that holds for the rest of the transaction."""

    async def down(self) -> None:
        await listen(self._server, self._replies, self._answers, self._to_client, self._transactions)

    async def up(self) -> None:
        if await self._opened():
            while (packet := await self._packet()) is not None:
                if packet.number == 0:
                    await self._command(packet)
                else:  # more of a command, or of what the server asked for
                    await self._send(packet)
        else:
            await self._lane.pass_all()
        await self._lane.finish()

    async def _opened(self) -> bool:
        """Passes on the client's first packet; False if what follows cannot be read."""
        hello = await self._packet()
        if hello is None:
            return False
        tls = wire.wants_tls(hello.payload)
        if tls:
            await self._faults.tls()
        await self._send(hello)
        if tls or wire.compresses(hello.payload):
            self._faults.unreadable("it is encrypted" if tls else "it is compressed")
            self._replies.opaque = True
            return False
        return True

    async def _packet(self) -> _Packet | None:
        head = await self._lane.frames.exactly(wire.HEAD)
        if len(head) < wire.HEAD:
            self._lane.put(head)
            return None
        size = int.from_bytes(head[:3], "little")
        body = await self._lane.frames.exactly(min(size, LIMIT))
        return _Packet(head + body, head[3], size - len(body) if len(body) == LIMIT else 0)

    async def _command(self, packet: _Packet) -> None:
        payload = packet.payload
        match payload[0] if payload else 0:
            case wire.QUERY | wire.EXECUTE:
                await self._work(packet, self._statements.said(payload))
            case wire.PREPARE:
                self._replies.asked(wire.PREPARE, self._statements.prepare(payload))
                await self._send(packet)
            case wire.CLOSE:
                self._statements.close(payload)
                await self._send(packet)
            case command:
                self._replies.asked(command)
                await self._send(packet)
                if command in (wire.CHANGE_USER, wire.RESET):
                    self._transactions.reset()

    async def _work(self, packet: _Packet, said: Sequence[TransactionStatement]) -> None:
        """A command that does something: through the faults that wait for it."""

        async def send(*, answered: bool) -> Reply:
            return await self._forward(packet, answered)

        before = self._transactions.n
        dues = self._transactions.meet(said)
        writes = [statement for statement in said if statement.kind == "write"]
        if self._transactions.n != before:
            self._read_only = None
        try:
            if self._read_only is not None and writes:
                raise self._read_only
            await self._faults.take(dues, send)
        except StatementRefused as refused:
            await self._refuse(packet, refused)
        else:
            for statement in writes:
                self._faults.wrote(statement)
        self._transactions.passed()
        await self._answers.release()

    async def _forward(self, packet: _Packet, answered: bool) -> Reply:
        if answered:
            self._answers.hold()
        self._replies.asked(wire.QUERY)
        await self._send(packet)
        if not answered:
            return Reply(None)
        await self._lane.flush()
        await self._replies.answered()
        return Reply(self._replies.told)

    async def _refuse(self, packet: _Packet, refused: StatementRefused) -> None:
        """Tells the client; where it is told that its transaction is rolled back, it is."""
        await self._lane.skip(packet.rest)
        back = refused.kind == "serialization_failure"
        if back:
            self._replies.asked(wire.QUERY, ours=True)
            self._lane.put(wire.query("ROLLBACK"))
            await self._lane.flush()
            await self._replies.answered()
        elif refused.kind == "read_only" and self._transactions.open:
            self._read_only = refused
        self._transactions.fail(rolled_back=back)
        await self._answers.release()
        await self._answers.put(wire.error(refused.kind))

    async def _send(self, packet: _Packet) -> None:
        await self._lane.send(packet.data, packet.rest)


async def turn_away(client: ConnectionEnd) -> None:
    """Tells a new client that there are too many, as the server does."""
    await client.write(wire.too_many())
