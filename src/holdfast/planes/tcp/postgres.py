"""Reads PostgreSQL connections: simple and extended queries, pipelines, COPY, transactions, and the answers to them."""

from __future__ import annotations

import asyncio
import struct

from holdfast.planes.tcp.transactions import StatementRefused, TransactionState
from holdfast.planes.tcp.wire_reader import MessageBatch, WireMessage, WireReader, WireReplies, Work
from holdfast.sqltext.transaction import TransactionStatement, parse_transaction
from holdfast.streams.connection_end import ConnectionEnd

FIX = b"!"
"""A query from Holdfast: the client receives only its ReadyForQuery, instead of the one that it waits for."""
_LONG = 65_536
"""A longer message passes unread."""
_ASKING = b"PBDCESQF" + FIX
_READY = (b"Q", b"S", b"F", FIX)
"""Questions that end with ReadyForQuery."""
_ENDS = {b"1": b"P", b"2": b"B", b"3": b"C", b"T": b"D", b"n": b"D", b"C": b"E", b"I": b"E", b"s": b"E"}
"""An answer, and the question of the extended protocol that it ends."""
_UNREAD = frozenset(b"DdSKRAv")
"""Rows and the like: they contain no information about questions and transactions."""
_ANSWERS_TO_FIX = (b"C", b"E", b"N")
"""Answers to Holdfast's query that the client did not request."""
_QUESTIONS_KEPT = 1_000_000
_length = struct.Struct("!I").unpack_from


class PostgresReplies(WireReplies):
    """Reads PostgreSQL's answers."""

    def __init__(self, transactions: TransactionState) -> None:
        super().__init__(transactions)
        self._skipping = False

    def expect(self, kind: bytes) -> None:
        """Record that a message of this kind goes to the server."""
        if kind not in _ASKING or len(self._waiting) > _QUESTIONS_KEPT:
            return
        if self._skipping and kind != b"S":  # after an error the server ignores messages until Sync
            return
        self._skipping = self._copying = False
        self._waiting.append(kind)

    def _scan_messages(self, data: bytes) -> tuple[int, int, list[bytes]]:
        at, size, start = self._passing, len(data), 0
        pieces: list[bytes] = []
        while at + 5 <= size:
            step = 1 + _length(data, at + 1)[0]
            if data[at] not in _UNREAD and step <= _LONG:
                if at + step > size:
                    break
                if not self._read_reply(data[at : at + 1], data[at + 5 : at + step]):
                    pieces.append(data[start:at])
                    start = at + step
            at += step
        return at, start, pieces

    def _read_reply(self, kind: bytes, body: bytes) -> bool:
        waiting = self._waiting
        first = waiting[0] if waiting else b""
        if kind == b"C":
            self.last = body.rstrip(b"\0").decode("utf-8", "replace")
        if kind == b"Z":
            if first in _READY:
                waiting.popleft()
            self._copying = False
            if not waiting and not self.is_in_transit:
                self._transactions.set_server_state(open=body != b"I", failed=body == b"E")
        elif kind in _ENDS and first == _ENDS[kind]:
            waiting.popleft()
        elif kind == b"E":
            fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0") if part}
            self.last = f"error {fields.get(b'C', '')}: {fields.get(b'M', '')}"
            if first and first not in _READY:  # in the extended protocol messages up to Sync get no answer
                while waiting and waiting[0] != b"S":
                    waiting.popleft()
                self._skipping = not waiting
        elif kind in (b"G", b"W"):
            self._copying = True
        self._moved.set()
        return not (first == FIX and kind in _ANSWERS_TO_FIX)


CANCEL, SSL, GSS = 80877102, 80877103, 80877104
"""Requests that may come before a start-up message."""
STARTUP = 10_000
"""The longest start-up message that PostgreSQL accepts."""
FLUSH = b"H\0\0\0\x04"
ROLLBACK = "ROLLBACK"

CODES = {
    "serialization_failure": ("40001", "could not serialize access due to concurrent update"),
    "lock_timeout": ("55P03", "canceling statement due to lock timeout"),
    "read_only": ("25006", "cannot execute {verb} in a read-only transaction"),
    "too_many_connections": ("53300", "sorry, too many clients already"),
}
_NAMES_KEPT = 5_000
"""Limit on the prepared statements and portals remembered per connection."""
_UNKNOWN = TransactionStatement("read", "")


def _remember(names: dict[str, TransactionStatement], name: str, statement: TransactionStatement) -> None:
    if len(names) >= _NAMES_KEPT and name not in names:
        names.pop(next(iter(names)))
    names[name] = statement


class PostgresReader(WireReader):
    """A connection to PostgreSQL."""

    HEAD = 5
    SIZE = (slice(1, 5), "big", 4)

    @staticmethod
    async def reject_client(client: ConnectionEnd) -> None:
        frames = MessageBatch(client.read, client)
        while len(size := await frames.read_exactly(4)) == 4 and 8 <= int.from_bytes(size) <= STARTUP:
            body = await frames.read_exactly(int.from_bytes(size) - 4)
            if int.from_bytes(body[:4]) not in (SSL, GSS):
                await client.write(build_error("too_many_connections", severity="FATAL"))
                return
            await client.write(b"N")  # no TLS: the client asks again without it

    def _set_up(self) -> None:
        self._replies: PostgresReplies = PostgresReplies(self._transactions)
        self._prepared: dict[str, TransactionStatement] = {}
        self._portals: dict[str, TransactionStatement] = {}

    async def _forward_start(self) -> bool:
        while True:
            size = await self._requests.read_exactly(4)
            length = int.from_bytes(size)
            if len(size) < 4 or not 8 <= length <= STARTUP:
                return self._give_up(size, "it does not begin with a message of PostgreSQL" if size else "")
            body = await self._requests.read_exactly(length - 4)
            code = int.from_bytes(body[:4])
            if code not in (SSL, GSS):
                self._requests.put(size + body)
                return code != CANCEL or self._give_up(b"", "")
            if code == SSL:
                await self._faults.request_tls()
            answer: asyncio.Queue[bytes] = asyncio.Queue()
            self._replies.on_byte = answer.put_nowait
            self._requests.put(size + body)
            await self._requests.flush()
            if await answer.get() != b"N":
                return self._give_up(b"", "it is encrypted")

    def _give_up(self, data: bytes, why: str) -> bool:
        self._requests.put(data)
        self._replies.opaque = True
        if why:
            self._faults.note_unreadable(why)
        return False

    def _read(self, message: WireMessage) -> Work | None:
        kind = message.head[:1]
        statements = self._find_statements(kind, message.body)
        match kind:
            case b"Q":
                return Work(statements, self._transactions.add_statements(statements))
            case b"E":
                return Work(statements, self._transactions.add_statements(statements, commits=False), ends=False)
            case b"S":
                return Work((), self._transactions.add_sync())
        self._expect(message)
        return None

    def _find_statements(self, kind: bytes, body: bytes) -> tuple[TransactionStatement, ...]:
        """Return the statements that a message runs; remembers named statements and portals."""
        match kind:
            case b"Q":
                return parse_transaction(body.rstrip(b"\0").decode("utf-8", "replace"), "postgres")
            case b"E":
                return (self._portals.get(read_strings(body, 1)[0], _UNKNOWN),)
            case b"P":
                name, text = read_strings(body, 2)
                statements = parse_transaction(text, "postgres")
                _remember(self._prepared, name, statements[0] if statements else _UNKNOWN)
            case b"B":
                portal, name = read_strings(body, 2)
                _remember(self._portals, portal, self._prepared.get(name, _UNKNOWN))
        return ()

    def _expect(self, message: WireMessage) -> None:
        self._replies.expect(message.head[:1])

    def _request_answer(self, message: WireMessage) -> None:
        if message.head[:1] == b"E":
            self._requests.put(FLUSH)

    async def _refuse(self, message: WireMessage, refused: StatementRefused) -> None:
        await self._requests.skip(message.rest)
        # The client must get answers in the order of its questions, so the earlier ones are answered first; without a
        # Flush the server would keep them to itself until the Sync that is not sent yet.
        if self._replies.waiting:
            self._requests.put(FLUSH)
            await self._requests.flush()
            await self._replies.wait_answered()
        verb = refused.statement.verb
        await self._answers.release()
        await self._answers.put(build_error(refused.kind, verb))
        if message.head[:1] == b"E":
            await self._skip_to_sync()
        commit = refused.statement.kind == "commit"
        self._transactions.fail(rolled_back=commit)
        # The server has not seen the statement, so its transaction is still sound while the client believes that it
        # failed. A query of Holdfast's own fails there, or rolls back, to bring both into the same state.
        self._replies.expect(FIX)
        self._requests.put(build_query(ROLLBACK if commit else build_raising_sql(refused.kind)))
        await self._requests.flush()
        await self._replies.wait_answered()

    async def _skip_to_sync(self) -> None:
        while (message := await self._read_message()) is not None:
            await self._requests.skip(message.rest)
            if message.head[:1] == b"S":
                return
            self._find_statements(message.head[:1], message.body)


def build_error(kind: str, verb: str = "", *, severity: str = "ERROR") -> bytes:
    """Return an ErrorResponse as the server would write it."""
    code, text = CODES[kind]
    fields = (("S", severity), ("V", severity), ("C", code), ("M", text.format(verb=verb)))
    body = b"".join(f"{name}{value}\0".encode() for name, value in fields) + b"\0"
    return b"E" + struct.pack("!i", len(body) + 4) + body


def build_query(sql: str) -> bytes:
    """Return a simple Query."""
    text = sql.encode() + b"\0"
    return b"Q" + struct.pack("!i", len(text) + 4) + text


def build_raising_sql(kind: str) -> str:
    """Build SQL that fails on the server with the error that the client receives, to put its transaction into that
    state."""
    code = CODES[kind][0]
    return f"DO $holdfast$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END $holdfast$"


def read_strings(body: bytes, count: int) -> list[str]:
    """Return the first zero-terminated strings of a message."""
    return [part.decode("utf-8", "replace") for part in body.split(b"\0", count)[:count]]
