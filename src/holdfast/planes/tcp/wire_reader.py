"""A WireReader reads the messages of a passing database connection, to let faults act on transactions."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

from holdfast.planes.tcp.sinks import ByteSink
from holdfast.planes.tcp.transactions import ConnectionFaults, StatementRefused, TransactionState, TransactionStep
from holdfast.protocols.fault import Reply
from holdfast.sqltext.transaction import TransactionStatement
from holdfast.streams.connection_end import ConnectionEnd

HOLD_LIMIT = 262_144
"""Bytes of an answer that are held back while a fault may still drop it; a longer answer is sent."""
LIMIT = 1_000_000
"""Bytes of a message that are examined; the rest passes unread."""


class WireReplies(ABC):
    """Reads the server's messages, and returns those for the client."""

    def __init__(self, transactions: TransactionState) -> None:
        self.opaque = False
        """Whether the rest cannot be read."""
        self.is_in_transit = False
        """Whether a message is in transit that the server has not read yet: its state is then out of date."""
        self.last = ""
        """The result of the last answer, such as `INSERT 0 1` or `OK`."""
        self._transactions = transactions
        self._waiting: deque[Any] = deque()
        """Questions that the server has not answered yet."""
        self._copying = False
        """Whether the server waits for data from the client."""
        self._part = b""
        self._passing = 0
        """Remaining bytes of a message that pass unread."""
        self._moved = asyncio.Event()
        self._over = False
        self.on_byte: Callable[[bytes], None] | None = None
        """Receives the next byte: a complete answer that says whether TLS is available; b"" if none comes."""

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    async def wait_answered(self) -> None:
        """Wait until every question is answered, or the server wants data; raise ConnectionResetError if it is
        gone."""
        while self._waiting and not self._copying:
            if self._over:
                raise ConnectionResetError("the server is gone")
            self._moved.clear()
            await self._moved.wait()

    def end(self) -> None:
        """Record that the server sends no more."""
        self._over = True
        self._moved.set()
        if self.on_byte is not None:
            self.on_byte(b"")

    def scan(self, data: bytes) -> bytes:
        """Return the part for the client; an incomplete message that must be read waits here."""
        if self.on_byte is not None:
            on_byte, self.on_byte = self.on_byte, None
            on_byte(data[:1])
            return data[:1] + self.scan(data[1:]) if data[1:] else data
        if self.opaque:
            return data
        # Bytes are passed on as slices of what arrived. Only an incomplete message that must be read is kept back, so a
        # large result of rows is never copied.
        if self._part:
            data, self._part = self._part + data, b""
        at, start, pieces = self._scan_messages(data)
        self._passing = max(0, at - len(data))
        self._part = data[at:]
        if not start and not self._part:
            return data
        return b"".join((*pieces, data[start : min(at, len(data))]))

    @abstractmethod
    def _scan_messages(self, data: bytes) -> tuple[int, int, list[bytes]]:
        """Return the end of the last message read, the start of the data for the client, and the pieces before.

        Most messages are rows, so each protocol has its own loop, in which a row costs no call.
        """


class WireMessage(NamedTuple):
    """One message of a client."""

    head: bytes
    body: bytes
    """For a long message, its beginning."""
    rest: int
    """Bytes that follow."""


class Work(NamedTuple):
    """The work that a message makes the server do."""

    statements: Sequence[TransactionStatement]
    steps: Sequence[TransactionStep]
    """The steps of its transaction."""
    ends: bool = True
    """Whether a statement outside a block is its own transaction, which ends with this message."""


class MessageBatch:
    """Reads a client's data in the sizes that its protocol needs, and sends messages to the server.

    Short messages are sent together: everything is sent before the next wait for the client.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes]], sink: ByteSink) -> None:
        self._read = read
        self._sink = sink
        self._data = bytearray()
        self._out: list[bytes] = []

    async def read_exactly(self, size: int) -> bytes:
        """Return this many bytes, or fewer at the end of the input."""
        while len(self._data) < size and await self._read_more():
            pass
        data = bytes(self._data[:size])
        del self._data[:size]
        return data

    async def read_some(self, most: int) -> bytes:
        """Return the available bytes, up to this many; b"" at the end of the input."""
        if not self._data and not await self._read_more():
            return b""
        return await self.read_exactly(min(most, len(self._data)))

    async def _read_more(self) -> bool:
        await self.flush()
        data = await self._read()
        self._data += data
        return bool(data)

    def put(self, data: bytes) -> None:
        self._out.append(data)

    async def flush(self) -> None:
        data, self._out = b"".join(self._out), []
        if data:
            await self._sink.write(data)

    async def send(self, data: bytes, rest: int) -> None:
        """Forward a message with this many bytes not read yet."""
        self.put(data)
        while rest and (more := await self.read_some(min(rest, LIMIT))):
            rest -= len(more)
            self.put(more)

    async def skip(self, rest: int) -> None:
        """Drop the rest of a message."""
        while rest and (data := await self.read_some(min(rest, LIMIT))):
            rest -= len(data)

    async def pass_all(self) -> None:
        """Pass everything on unread."""
        while data := await self.read_some(LIMIT):
            self.put(data)

    async def finish(self) -> None:
        await self.flush()
        await self._sink.finish()


class Answers:
    """Sends data to the client: immediately, or once a fault has decided whether to drop it."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._kept_back: bytearray | None = None
        self._lock = asyncio.Lock()

    async def put(self, data: bytes) -> None:
        async with self._lock:
            if self._kept_back is None:
                await self._sink.write(data)
                return
            self._kept_back += data
            if len(self._kept_back) > HOLD_LIMIT:
                await self._release()

    def hold(self) -> None:
        """Hold back everything from now on."""
        if self._kept_back is None:
            self._kept_back = bytearray()

    async def release(self) -> None:
        """Send what was held back, and everything that follows."""
        async with self._lock:
            await self._release()

    async def _release(self) -> None:
        answer, self._kept_back = self._kept_back, None
        if answer:
            await self._sink.write(bytes(answer))


class WireReader(ABC):
    """Carries one connection: the requests of the client, and the replies of the server."""

    HEAD: ClassVar[int]
    """Bytes before each message, with its size in them."""
    SIZE: ClassVar[tuple[slice, Literal["big", "little"], int]]
    """Where its size is in them, in which byte order, and how many of the bytes before the message it includes."""
    _replies: WireReplies

    def __init__(
        self,
        client: ConnectionEnd,
        server: ConnectionEnd,
        to_client: ByteSink,
        to_server: ByteSink,
        faults: ConnectionFaults,
    ) -> None:
        self._server = server
        self._to_client = to_client
        self._faults = faults
        self._requests = MessageBatch(client.read, to_server)
        self._transactions = TransactionState(faults.begin, faults.end)
        self._answers = Answers(to_client)
        self._set_up()

    @staticmethod
    @abstractmethod
    async def reject_client(client: ConnectionEnd) -> None:
        """Report "too many connections" to a new client, as a full server does."""

    @abstractmethod
    def _set_up(self) -> None:
        """Create `_replies`, and whatever else reads this protocol."""

    async def forward_replies(self) -> None:
        """Forward the server's messages until it ends."""
        try:
            while data := await self._server.read():
                if data_for_client := self._replies.scan(data):
                    await self._answers.put(data_for_client)
            await self._answers.release()
            await self._to_client.finish()
        finally:
            self._replies.end()
            self._transactions.set_server_state(open=False)

    async def forward_requests(self) -> None:
        """Forward the client's messages until it ends."""
        if not await self._forward_start():
            await self._requests.pass_all()
        else:
            while (message := await self._read_message()) is not None:
                if (work := self._read(message)) is None:
                    await self._pass(message)
                    continue
                await self._handle_work(message, work)
                if work.ends:
                    self._transactions.mark_sent()
                await self._answers.release()
        await self._requests.finish()

    async def _read_message(self) -> WireMessage | None:
        head = await self._requests.read_exactly(self.HEAD)
        if len(head) < self.HEAD:
            self._requests.put(head)
            return None
        place, order, included = self.SIZE
        size = max(0, int.from_bytes(head[place], order) - included)
        body = await self._requests.read_exactly(min(size, LIMIT))
        return WireMessage(head, body, size - len(body) if len(body) == LIMIT else 0)

    async def _handle_work(self, message: WireMessage, work: Work) -> None:
        """Send a working message through the faults that wait for it."""
        self._replies.is_in_transit = True
        try:
            await self._faults.send_through(work.steps, partial(self._forward, message))
        except StatementRefused as refused:
            await self._refuse(message, refused)
        else:
            for statement in work.statements:
                if statement.kind == "write":
                    self._faults.record_write(statement)
        self._replies.is_in_transit = False

    async def _forward(self, message: WireMessage, answered: bool) -> Reply:
        # A fault may drop the answer after the server has done the work, so the answer must not leave before the fault
        # has returned.
        if answered:
            self._answers.hold()
        self._expect(message)
        await self._pass(message)
        if not answered:
            return Reply(None)
        # The extended protocol of PostgreSQL answers only at a Sync or Flush; without one this would wait forever.
        self._request_answer(message)
        await self._requests.flush()
        await self._replies.wait_answered()
        return Reply(self._replies.last)

    async def _pass(self, message: WireMessage) -> None:
        await self._requests.send(message.head + message.body, message.rest)

    @abstractmethod
    async def _forward_start(self) -> bool:
        """Forward the start of the connection; False if the rest cannot be read."""

    @abstractmethod
    def _read(self, message: WireMessage) -> Work | None:
        """Return the work of a message; None if faults cannot wait for it."""

    @abstractmethod
    def _expect(self, message: WireMessage) -> None:
        """Record that the message goes to the server, which will answer it."""

    def _request_answer(self, message: WireMessage) -> None:
        """Make the server answer immediately when it would wait for more."""
        return

    @abstractmethod
    async def _refuse(self, message: WireMessage, refused: StatementRefused) -> None:
        """Report the refusal to the client, and put the server's transaction into the same state."""
