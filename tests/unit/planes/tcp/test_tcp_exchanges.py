"""The digests of values in service traffic."""

from __future__ import annotations

import struct

import pytest

from holdfast.model.fingerprint import fingerprints, followed_values
from holdfast.model.observation import ServiceExchange
from holdfast.planes.tcp.exchanges import hide_private_values, read_received_text, read_sent_text

STORED = {"trace": [{"tool": "GET http://shop.test/orders?id=C%2D40417&n=1"}], "answer": "paid 1219.50"}


def test_only_values_that_are_stored_in_plain_text_keep_a_digest_that_can_be_guessed() -> None:
    values = {"c40417", "1219.5", "4711", "990"}
    sent = ServiceExchange(0.0, 0.0, "service", "db", 1, sent=fingerprints(values))
    received = ServiceExchange(1.0, 1.0, "service", "db", 1, received=fingerprints({"4711"}))
    one, other = hide_private_values([sent, received], STORED)
    assert set(fingerprints(values)) & set(one.sent) == set(fingerprints({"c40417", "1219.5"}))
    assert set(other.received) < set(one.sent)  # equal values stay equal within a trial
    (again, _) = hide_private_values([sent, received], STORED)
    assert len(set(one.sent) & set(again.sent)) == 2  # and differ between trials


# The values in the bytes of services' connections.


def frame(kind, body):
    return kind + struct.pack("!i", len(body) + 4) + body


def column(value):
    return struct.pack("!i", len(value)) + value


ROW = frame(b"T", b"\0\1customer_name\0") + frame(
    b"D", struct.pack("!h", 4) + column(b"C-40417") + column(b"219.50") + struct.pack("!i", -1) + column(b"ok")
)
PARSE = frame(b"P", b"\0INSERT INTO customers (note) VALUES ($1, 'R-99310')\0\0\0")
BIND = frame(
    b"B",
    b"\0\0" + struct.pack("!hhh", 2, 1, 0) + struct.pack("!h", 3)
    + column(struct.pack("!i", 90412)) + column(b"C-40417") + column(struct.pack("!d", 219.5)),
)  # fmt: skip


def packet(body, n=0):
    return len(body).to_bytes(3, "little") + bytes((n,)) + body


MYSQL_ROW = packet(b"\x03def\x04shop\x09customers") + packet(b"\x07C-40417\xfb\x06219.50")
RESP = b"*3\r\n$3\r\nSET\r\n$100\r\ncart:C-40417\r\n$5\r\n219.5\r\n"


@pytest.mark.parametrize(
    ("wire", "data", "values"),
    [
        ("postgres", frame(b"Q", b"SELECT customers FROM orders WHERE id = 'C-40417'\0"), {"c40417"}),
        ("postgres", PARSE + BIND + frame(b"S", b""), {"r99310", "90412", "c40417", "219.5"}),
        ("postgres", frame(b"p", b"password-4711\0"), set()),
        ("mysql", packet(b"\x03UPDATE customers SET total = 219.50 WHERE id = 'C-40417'"), {"c40417", "219.5"}),
        ("", RESP, {"c40417", "cart:c40417", "219.5"}),
    ],
)
def test_values_in_a_request_are_read(wire, data, values):
    assert followed_values(read_sent_text(wire, data)).keys() >= values
    assert not followed_values(read_sent_text(wire, data)).keys() & {"customers", "password4711", "100"}


@pytest.mark.parametrize(
    ("wire", "data"),
    [("postgres", ROW), ("mysql", MYSQL_ROW), ("", b"$7\r\nC-40417\r\n$6\r\n219.50\r\n")],
)
def test_values_in_a_reply_are_read(wire, data):
    assert followed_values(read_received_text(wire, data)).keys() == {"c40417", "219.5"}


@pytest.mark.parametrize("wire", ["postgres", "mysql", ""])
@pytest.mark.parametrize("data", [b"", b"\0", b"D\xff\xff\xff\xff", b"D\0\0\0\x07\xff\xff\0", bytes(range(256)) * 3])
def test_any_bytes_can_be_read(wire, data):
    read_sent_text(wire, data)
    read_received_text(wire, data)
