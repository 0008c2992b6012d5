"""A connection that is read along passes unchanged, and is understood alike however its bytes are cut."""

import asyncio
import itertools
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.planes.tcp import mysql, postgres
from holdfast.planes.tcp.mysql import MysqlReader
from holdfast.planes.tcp.postgres import PostgresReader, build_error
from holdfast.planes.tcp.transactions import TransactionState
from holdfast.planes.tcp.wire_reader import LIMIT

SQL = [
    "BEGIN", "COMMIT", "ROLLBACK", "SELECT 1", "INSERT INTO a VALUES (1)", "SET x = 1", "SET autocommit = 0", "",
    "INSERT INTO a VALUES ('COMMIT'); UPDATE b SET c = 1", "BEGIN; DELETE FROM a; COMMIT", "CREATE TABLE a (b int)",
]  # fmt: skip


class Told:
    """What a connection is heard to do."""

    def __init__(self):
        self.log = []
        self.begun = 0

    def begin(self):
        self.begun += 1
        self.log.append("begin")
        return self.begun

    def end(self):
        self.log.append("end")

    def record_write(self, statement):
        self.log.append(f"wrote {statement.text}")

    async def send_through(self, dues, send):
        await send(False)

    async def request_tls(self):
        """No fault waits for it."""

    def note_unreadable(self, why):
        self.log.append(f"unreadable: {why}")


class End:
    def __init__(self):
        self.queue = asyncio.Queue()

    async def read(self):
        return await self.queue.get()


class Sink:
    def __init__(self):
        self.data = b""

    async def write(self, data):
        self.data += data

    async def finish(self):
        self.data += b"(end)"


async def read_along(kind, talk):
    """What the connection is heard to do."""
    client, server, to_client, to_server, faults = End(), End(), Sink(), Sink(), Told()
    reader = kind(client, server, to_client, to_server, faults)
    tasks = [asyncio.ensure_future(reader.forward_requests()), asyncio.ensure_future(reader.forward_replies())]
    for side, data in [*talk, ("client", b""), ("server", b"")]:
        (client if side == "client" else server).queue.put_nowait(data)
        for _ in range(12):
            await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert to_server.data == b"".join(data for side, data in talk if side == "client") + b"(end)"
    assert to_client.data == b"".join(data for side, data in talk if side == "server") + b"(end)"
    return faults.log


def pieces(talk, sizes):
    """The same, in pieces of these sizes, over and over."""
    found, at = [], 0
    for side, data in talk:
        while data:
            size = sizes[at % len(sizes)]
            found.append((side, data[:size]))
            data, at = data[size:], at + 1
    return found


sizes = st.lists(st.sampled_from([1, 2, 3, 5, 7, 50, 100_000]), min_size=1, max_size=6)


def pg(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


def pg_turn(sql, way, status, failed):
    """A question and its answer: by text, or prepared in one or two messages; `failed`: refused."""
    row = pg(b"T", b"ab") + pg(b"D", b"x" * 30)
    done = (pg(b"E", b"SERROR\0C25006\0Mno\0\0") if failed else row + pg(b"C", b"DONE 1\0")) + pg(b"Z", status)
    if way == "text":
        return [("client", pg(b"Q", sql.encode() + b"\0")), ("server", done)]
    prepared = pg(b"P", b"s\0" + sql.encode() + b"\0\0\0")
    run = pg(b"B", b"p\0s\0\0\0\0\0\0\0") + pg(b"E", b"p\0\0\0\0\0") + pg(b"S")
    if way == "at once":
        return [("client", prepared + run), ("server", pg(b"1") + pg(b"2") + done)]
    return [("client", prepared + pg(b"H")), ("server", pg(b"1")), ("client", run), ("server", pg(b"2") + done)]


pg_turns = st.builds(
    pg_turn,
    st.sampled_from(SQL),
    st.sampled_from(["text", "at once", "by turns"]),
    st.sampled_from([b"I", b"T", b"E"]),
    st.booleans(),
)
STARTUP = struct.pack("!II", 9, 196608) + b"\0"
ASK_TLS = struct.pack("!II", 8, 80877103)
READY = ("server", pg(b"R", bytes(4)) + pg(b"S", b"a\0b\0") + pg(b"Z", b"I"))
PG_BEGINNINGS = [
    [("client", STARTUP), READY],
    [("client", ASK_TLS), ("server", b"N"), ("client", STARTUP), READY],
    [("client", ASK_TLS), ("server", b"S")],
    [("client", struct.pack("!II", 16, 80877102) + bytes(8))],
    [("client", b"\x16\x03\x01\x02\x00")],
]


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(PG_BEGINNINGS), st.lists(pg_turns, max_size=6), sizes)
def test_postgres(beginning, turns, sizes):
    talk = [*beginning, *(said for turn in turns for said in turn)]
    assert asyncio.run(read_along(PostgresReader, pieces(talk, sizes))) == asyncio.run(read_along(PostgresReader, talk))


INSERT = "INSERT INTO a VALUES ("


def test_of_a_long_message_of_postgres_the_beginning_is_read():
    long = f"{INSERT}'".encode() + b"x" * (2 * LIMIT) + b"')\0"
    turn = pg_turn("COMMIT", "text", b"I", False)
    talk = pieces([*PG_BEGINNINGS[0], ("client", pg(b"Q", long)), *turn[1:], *turn], [262_144])
    assert asyncio.run(read_along(PostgresReader, talk)) == ["begin", f"wrote {INSERT}''", "end"]


def my_ok(status, number=1):
    return mysql.build_packet(b"\0\1\0" + struct.pack("<HH", status, 0), number)


def my_turn(sql, way, status, failed):
    refused = mysql.build_packet(b"\xff\x10\x04#HY000no", 1)
    done = refused if failed else my_ok(status)
    if way == "text":
        return [("client", mysql.build_query(sql)), ("server", done)]
    if way == "reset":
        return [("client", mysql.build_packet(b"\x1f", 0)), ("server", my_ok(2))]
    prepare = mysql.build_packet(b"\x16" + sql.encode(), 0)
    number = mysql.build_packet(b"\0" + struct.pack("<IHHxH", 7, 0, 0, 0), 1)
    run = mysql.build_packet(b"\x17" + struct.pack("<IBI", 7 if way == "prepared" else 0xFFFFFFFF, 0, 1), 0)
    close = mysql.build_packet(b"\x19" + struct.pack("<I", 7), 0)
    return [("client", prepare), ("server", number), ("client", run), ("server", done), ("client", close)]


my_turns = st.builds(
    my_turn,
    st.sampled_from(SQL),
    st.sampled_from(["text", "prepared", "last", "reset"]),
    st.sampled_from([0, 1, 2, 3]),
    st.booleans(),
)
GREETING = ("server", mysql.build_packet(b"\x0a10.11\0" + bytes(60), 0))


def hello(flags):
    body = struct.pack("<II", flags, 1 << 24) + bytes(24)
    return ("client", mysql.build_packet(body if flags & 1 << 11 else body + b"root\0\0", 1))


MY_BEGINNINGS = [
    [GREETING, hello(0), ("server", my_ok(2, 2))],
    [GREETING, hello(1 << 11), ("client", b"\x16\x03\x01\x02\x00")],
    [GREETING, hello(1 << 5), ("server", my_ok(2, 2))],
]


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(MY_BEGINNINGS), st.lists(my_turns, max_size=6), sizes)
def test_mysql(beginning, turns, sizes):
    talk = [*beginning, *(said for turn in turns for said in turn)]
    assert asyncio.run(read_along(MysqlReader, pieces(talk, sizes))) == asyncio.run(read_along(MysqlReader, talk))


# What servers say, however it is cut into pieces.


def transactions():
    return TransactionState(lambda: 1, lambda: None)


def message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


ROW = message(b"D", b"x" * 300)
SERVER_READY = message(b"Z", b"T")
ANSWER = message(b"1") + message(b"2") + message(b"T", b"ab") + ROW * 3 + message(b"C", b"SELECT 3\0") + SERVER_READY
LONG = message(b"D", b"y" * 200_000) + message(b"C", b"SELECT 1\0") + message(b"Z", b"I")


def cut(data, places):
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(st.lists(st.integers(0, 1_000_000), max_size=12))
def test_postgres_answers_pass_unchanged_and_are_understood(places):
    async def run():
        there = transactions()
        replies = postgres.PostgresReplies(there)
        for kind in (b"P", b"B", b"D", b"E", b"S"):
            replies.expect(kind)
        out = b"".join(replies.scan(piece) for piece in cut(ANSWER, places))
        assert not replies.waiting
        replies.expect(b"Q")
        out += b"".join(replies.scan(piece) for piece in cut(LONG, places))
        return out, replies, there

    out, replies, there = asyncio.run(run())
    assert out == ANSWER + LONG
    assert (replies.waiting, replies.last, there.open) == (False, "SELECT 1", False)


@given(st.lists(st.integers(0, 1_000_000), max_size=12))
def test_the_client_does_not_get_answers_to_holdfasts_queries(places):
    async def run():
        replies = postgres.PostgresReplies(transactions())
        replies.expect(postgres.FIX)
        data = message(b"N", b"SWARNING\0\0") + message(b"C", b"ROLLBACK\0") + message(b"Z", b"I") + ROW
        return b"".join(replies.scan(piece) for piece in cut(data, places))

    assert asyncio.run(run()) == message(b"Z", b"I") + ROW


def test_after_an_error_postgres_is_deaf_until_sync():
    async def run():
        replies = postgres.PostgresReplies(transactions())
        for kind in (b"P", b"B", b"E", b"B", b"E"):
            replies.expect(kind)
        replies.scan(message(b"1") + message(b"2") + build_error("read_only", "INSERT"))
        assert not replies.waiting
        replies.expect(b"E")
        assert not replies.waiting
        replies.expect(b"S")
        assert replies.waiting
        replies.scan(message(b"Z", b"E"))
        return replies.last

    assert asyncio.run(run()).startswith("error 25006: ")


async def test_an_answer_that_never_comes_ends_with_the_server():
    replies = postgres.PostgresReplies(transactions())
    replies.expect(b"Q")
    asyncio.get_running_loop().call_soon(replies.end)
    with pytest.raises(ConnectionResetError):
        await replies.wait_answered()


OK = mysql.build_packet(b"\0\1\0\x03\0\0\0", 1)
ROWS = mysql.build_packet(b"\1", 1) + b"".join(mysql.build_packet(b"r" * 500, n % 256) for n in range(2, 600))


@given(st.lists(st.integers(0, 1_000_000), max_size=12))
def test_mysql_answers_pass_unchanged_and_are_understood(places):
    async def run():
        there = transactions()
        replies = mysql.MysqlReplies(there)
        replies.expect_answer(mysql.MysqlCommand.QUERY)
        out = b"".join(replies.scan(piece) for piece in cut(OK, places))
        assert (replies.last, there.open) == ("OK", True)
        replies.expect_answer(mysql.MysqlCommand.QUERY)
        out += b"".join(replies.scan(piece) for piece in cut(ROWS, places))
        assert replies.last == "rows"
        replies.expect_answer(mysql.MysqlCommand.QUERY, ours=True)
        ours = b"".join(replies.scan(piece) for piece in cut(OK, places))
        return out, ours

    assert asyncio.run(run()) == (OK + ROWS, b"")


def test_mysql_errors_have_their_numbers():
    assert mysql.describe_answer(mysql.build_error("lock_timeout")[4:]).startswith("error 1205: ")


def test_a_full_mysql_server_rejects_a_client():
    class Client:
        async def write(self, data):
            assert data == b"\x17\0\0\0\xff\x10\x04Too many connections"

    asyncio.run(mysql.MysqlReader.reject_client(Client()))
