from __future__ import annotations

import gzip
import zlib

import pytest

from holdfast.agents.http.reply_headers import UnreadableBody, read_content_type, unpack_body

TEXT = b"source: the annual report " * 20


def bare(data: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(data) + packing.flush()


def read(packing: str, body: bytes, limit: int = 10_000, *, whole: bool = True) -> bytes:
    return unpack_body(((b"content-encoding", packing.encode()),), body, limit, whole=whole)


@pytest.mark.parametrize(
    ("packing", "body"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("X-GZIP ", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", bare(TEXT)),
        ("identity", TEXT),
        ("utf-8", TEXT),
    ],
    ids=["gzip", "x-gzip", "gzip-twice", "deflate", "deflate-bare", "identity", "unknown"],
)
def test_packed_bodies_are_read(packing: str, body: bytes) -> None:
    assert read(packing, body) == TEXT


def test_nothing_packed_is_nothing() -> None:
    assert read("gzip", b"") == b""
    assert unpack_body((), b"plain", 10, whole=True) == b"plain"


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_a_corrupt_body_is_unpackable(packing: str) -> None:
    with pytest.raises(UnreadableBody, match="Content-Encoding"):
        read(packing, b"\xff" + b"junk" * 20)


def test_what_follows_a_packed_body_is_corrupt_and_what_was_before_is_kept() -> None:
    with pytest.raises(UnreadableBody) as caught:
        read("gzip", gzip.compress(TEXT) + b"junk")
    assert caught.value.partial == TEXT


def test_a_body_that_broke_off_is_read_as_far_as_it_goes() -> None:
    part = gzip.compress(TEXT)[:-12]
    found = read("gzip", part, whole=False)
    assert found
    assert TEXT.startswith(found)
    with pytest.raises(UnreadableBody, match="ends before") as caught:
        read("gzip", part)
    assert caught.value.partial == found


def test_a_bomb_is_read_up_to_the_limit() -> None:
    assert len(read("gzip", gzip.compress(bytes(1_000_000)), limit=5_000)) == 5_001


@pytest.mark.parametrize("packing", ["br", "zstd"])
def test_a_packing_that_was_not_asked_for_is_unpackable(packing: str) -> None:
    with pytest.raises(UnreadableBody, match=packing):
        read(packing, b"anything")


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Text/HTML", ("text/html", None)),
        ("application/json; Charset=UTF-8", ("application/json", "UTF-8")),
        ('text/plain; a=b; charset="iso-8859-1" ; c', ("text/plain", "iso-8859-1")),
        ("text/plain; charset=", ("text/plain", None)),
        ("", ("", None)),
    ],
)
def test_type_and_charset(header: str, found: tuple[str, str | None]) -> None:
    assert read_content_type(((b"Content-Type", header.encode()),)) == found


def test_no_type_is_bytes() -> None:
    assert read_content_type(()) == ("application/octet-stream", None)
