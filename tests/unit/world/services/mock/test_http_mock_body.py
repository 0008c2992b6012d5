"""What a mock understands of a body."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from golden_words import Golden
from holdfast.world.services.mock.server import decode_body

LIMIT = 1_000
MAIL = json.dumps({"to": "x@y"}).encode()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("", MAIL),
        ("identity", MAIL),
        ("gzip", gzip.compress(MAIL, mtime=0)),
        ("X-GZIP", gzip.compress(MAIL, mtime=0)),
        ("gzip", gzip.compress(MAIL[:5], mtime=0) + gzip.compress(MAIL[5:], mtime=0)),
        ("deflate", zlib.compress(MAIL)),
        ("deflate", raw_deflate(MAIL)),
        ("deflate, gzip", gzip.compress(zlib.compress(MAIL), mtime=0)),
    ],
)
def test_an_encoding_is_undone(encoding: str, data: bytes) -> None:
    assert decode_body([("Content-Encoding", encoding)], data, LIMIT, cut=False) == (MAIL.decode(), False, "")


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("br", MAIL),
        ("gzip, br", MAIL),
        ("gzip", MAIL),
        ("gzip", gzip.compress(MAIL, mtime=0)[:-9]),
        ("deflate", MAIL),
        ("gzip," * 9, MAIL),
    ],
    ids=["unknown", "unknown-after-gzip", "not-gzip", "cut-gzip", "not-deflate", "too-many"],
)
def test_what_cannot_be_undone_is_said(encoding: str, data: bytes, golden: Golden) -> None:
    golden(decode_body([("content-encoding", encoding)], data, LIMIT, cut=False).unread)


def test_a_bomb_is_cut() -> None:
    bomb = gzip.compress(gzip.compress(bytes(50_000_000)))
    found = decode_body([("content-encoding", "gzip"), ("content-encoding", "gzip")], bomb, LIMIT, cut=False)
    assert (len(found.text) <= LIMIT, found.cut, found.unread) == (True, True, "")


def test_the_beginning_of_a_long_body_is_read_as_far_as_it_goes() -> None:
    found = decode_body([("content-encoding", "gzip")], gzip.compress(MAIL, mtime=0)[:-9], LIMIT, cut=True)
    assert (MAIL.decode().startswith(found.text), found.cut, found.unread) == (True, True, "")


@pytest.mark.parametrize(
    ("kind", "charset"),
    [
        ("application/json; charset=utf-16", "utf-16"),
        ("application/json", "utf-16-le"),
        ("application/json", "utf-8-sig"),
        ("text/plain; charset=latin-1", "latin-1"),
    ],
)
def test_a_charset_is_read(kind: str, charset: str) -> None:
    text = '{"to": "é@y"}'
    assert decode_body([("content-type", kind)], text.encode(charset), LIMIT, cut=False) == (text, False, "")


@pytest.mark.parametrize("charset", ["punycode", "zip", "no-such", "x" * 90])
def test_a_charset_that_is_not_known_is_said(charset: str, golden: Golden) -> None:
    found = decode_body([("content-type", f"text/plain; charset={charset}")], MAIL, LIMIT, cut=False)
    golden(found.unread)


def test_a_body_of_bytes_stays_what_it_was() -> None:
    assert decode_body([("content-type", "image/png")], b"\x89PNG\xff", LIMIT, cut=False) == ("�PNG�", False, "")
