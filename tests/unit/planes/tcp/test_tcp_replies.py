"""What servers say, however it is cut into pieces."""

import asyncio
import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.planes.tcp import mysql, postgres
from holdfast.planes.tcp.postgres import build_error
from holdfast.planes.tcp.transactions import TransactionState


def transactions():
    return TransactionState(lambda: 1, lambda: None)


def message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


ROW = message(b"D", b"x" * 300)
READY = message(b"Z", b"T")
ANSWER = message(b"1") + message(b"2") + message(b"T", b"ab") + ROW * 3 + message(b"C", b"SELECT 3\0") + READY
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
def test_the_answer_to_a_query_of_ours_is_not_for_the_client(places):
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


def test_an_answer_that_never_comes_ends_with_the_server():
    async def run():
        replies = postgres.PostgresReplies(transactions())
        replies.expect(b"Q")
        asyncio.get_running_loop().call_soon(replies.end)
        with pytest.raises(ConnectionResetError):
            await replies.wait_answered()

    asyncio.run(run())


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
    assert mysql.build_too_many_error() == b"\x17\0\0\0\xff\x10\x04Too many connections"
