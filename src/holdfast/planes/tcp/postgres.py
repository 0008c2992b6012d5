"""PostgreSQL read along: simple and extended queries, pipelines, COPY; who is in a transaction, and what is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from holdfast.planes.tcp.client_frames import LIMIT, ClientFrames
from holdfast.planes.tcp.connection_end import ConnectionEnd
from holdfast.planes.tcp.message_batch import MessageBatch
from holdfast.planes.tcp.postgres_replies import FIX, PostgresReplies
from holdfast.planes.tcp.postgres_statements import PostgresStatements
from holdfast.planes.tcp.postgres_wire import CANCEL, FLUSH, GSS, ROLLBACK, SSL, STARTUP, error, query, raising
from holdfast.planes.tcp.sinks import ByteSink
from holdfast.planes.tcp.transaction_state import Due, TransactionState
from holdfast.planes.tcp.wire_reader import Answers, Faulty, StatementRefused, listen
from holdfast.protocols import Reply
from holdfast.sqltext.transaction import TransactionStatement


class _Message(NamedTuple):
    kind: bytes
    data: bytes
    """As it came; of a long one the beginning."""
    rest: int = 0
    """Bytes that follow."""

    @property
    def body(self) -> bytes:
        return self.data[5:]


class PostgresReader:
    """One connection, client to server (`up`) and back (`down`)."""

    def __init__(
        self, client: ConnectionEnd, server: ConnectionEnd, to_client: ByteSink, to_server: ByteSink, faults: Faulty
    ) -> None:
        self._server = server
        self._to_client = to_client
        self._faults = faults
        self._lane = MessageBatch(client.read, to_server)
        self._transactions = TransactionState(faults.begin, faults.end)
        self._replies = PostgresReplies(self._transactions)
        self._answers = Answers(to_client.write)
        self._statements = PostgresStatements()

    async def down(self) -> None:
        await listen(self._server, self._replies, self._answers, self._to_client, self._transactions)

    async def up(self) -> None:
        if await self._opened():
            while (message := await self._message()) is not None:
                await self._one(message)
        else:
            await self._lane.pass_all()
        await self._lane.finish()

    async def _opened(self) -> bool:
        """Passes on how the connection begins; False if what follows cannot be read."""
        while True:
            size = await self._lane.frames.exactly(4)
            length = int.from_bytes(size)
            if len(size) < 4 or not 8 <= length <= STARTUP:
                return self._give_up(size, "it does not begin as PostgreSQL's" if size else "")
            body = await self._lane.frames.exactly(length - 4)
            code = int.from_bytes(body[:4])
            if code not in (SSL, GSS):
                self._lane.put(size + body)
                return code != CANCEL or self._give_up(b"", "")
            if code == SSL:
                await self._faults.tls()
            answer = asyncio.get_running_loop().create_future()
            self._replies.expect_byte(partial(_tell, answer))
            self._lane.put(size + body)
            await self._lane.flush()
            if await answer != b"N":
                return self._give_up(b"", "it is encrypted")

    def _give_up(self, data: bytes, why: str) -> bool:
        self._lane.put(data)
        self._replies.opaque = True
        if why:
            self._faults.unreadable(why)
        return False

    async def _message(self) -> _Message | None:
        head = await self._lane.frames.exactly(5)
        if len(head) < 5:
            self._lane.put(head)
            return None
        size = max(0, int.from_bytes(head[1:]) - 4)
        body = await self._lane.frames.exactly(min(size, LIMIT))
        return _Message(head[:1], head + body, size - len(body) if len(body) == LIMIT else 0)

    async def _one(self, message: _Message) -> None:
        match message.kind:
            case b"Q":
                said = self._statements.said(message.kind, message.body)
                await self._work(message, self._transactions.meet(said), said)
                self._transactions.passed()
            case b"E":
                said = self._statements.said(message.kind, message.body)
                await self._work(message, self._transactions.meet(said, commits=False), said)
            case b"S":
                await self._work(message, self._transactions.sync(), ())
                self._transactions.passed()
            case _:
                self._statements.said(message.kind, message.body)
                await self._send(message)

    async def _work(self, message: _Message, dues: list[Due], said: Sequence[TransactionStatement]) -> None:
        """A message that does something: through the faults that wait for it."""

        async def send(*, answered: bool) -> Reply:
            return await self._forward(message, answered)

        self._replies.attending = True
        try:
            await self._faults.take(dues, send)
        except StatementRefused as refused:
            await self._refuse(message, refused)
        else:
            for statement in said:
                if statement.kind == "write":
                    self._faults.wrote(statement)
        self._replies.attending = False
        await self._answers.release()

    async def _forward(self, message: _Message, answered: bool) -> Reply:
        if not answered:
            await self._send(message)
            return Reply(None)
        self._answers.hold()
        await self._send(message)
        if message.kind == b"E":
            self._lane.put(FLUSH)
        await self._lane.flush()
        await self._replies.answered()
        return Reply(self._replies.tag)

    async def _refuse(self, message: _Message, refused: StatementRefused) -> None:
        """Tells the client, and puts the server's transaction into the state that the client is told of."""
        await self._lane.skip(message.rest)
        if self._replies.waiting:
            self._lane.put(FLUSH)
            await self._lane.flush()
            await self._replies.answered()
        verb = refused.statement.verb
        await self._answers.release()
        await self._answers.put(error(refused.kind, verb))
        if message.kind == b"E":
            await self._skip_to_sync()
        commit = refused.statement.kind == "commit"
        self._transactions.fail(rolled_back=commit)
        self._replies.expect(FIX)
        self._lane.put(query(ROLLBACK if commit else raising(refused.kind)))
        await self._lane.flush()
        await self._replies.answered()

    async def _skip_to_sync(self) -> None:
        while (message := await self._message()) is not None:
            await self._lane.skip(message.rest)
            if message.kind == b"S":
                return
            self._statements.said(message.kind, message.body)

    async def _send(self, message: _Message) -> None:
        self._replies.expect(message.kind)
        await self._lane.send(message.data, message.rest)


def _tell(answer: asyncio.Future[bytes], byte: bytes) -> None:
    if not answer.done():
        answer.set_result(byte)


async def turn_away(client: ConnectionEnd) -> None:
    """Tells a new client that there are too many, as the server does; its wish for TLS is declined first."""
    frames = ClientFrames(client.read, _at_once)
    while len(size := await frames.exactly(4)) == 4 and 8 <= int.from_bytes(size) <= STARTUP:
        body = await frames.exactly(int.from_bytes(size) - 4)
        if int.from_bytes(body[:4]) not in (SSL, GSS):
            await client.write(error("too_many_connections", severity="FATAL"))
            return
        await client.write(b"N")


async def _at_once() -> None:
    await asyncio.sleep(0)
