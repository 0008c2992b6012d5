"""What a head says of its body, and which of its fields go on."""

from __future__ import annotations

import pytest

from holdfast.http1.heads import BodyFraming, RawFields, build_frame, drop_hop_by_hop, read_body_framing
from holdfast.http1.outgoing_request import build_request, parse_endpoint


@pytest.mark.parametrize(
    ("fields", "framing"),
    [
        ((), BodyFraming(None, False, False)),
        (((b"content-LENGTH", b"12"),), BodyFraming(12, False, False)),
        (((b"Content-Length", b"a lot"),), BodyFraming(None, False, False)),
        (((b"Transfer-Encoding", b"gzip, Chunked"),), BodyFraming(None, True, False)),
        (((b"Transfer-Encoding", b"gzip"), (b"Content-Length", b"12")), BodyFraming(None, False, False)),
        (((b"Content-Length", b"12"), (b"transfer-encoding", b"chunked")), BodyFraming(None, True, False)),
        (((b"Expect", b"100-Continue"), (b"Content-Length", b"12")), BodyFraming(12, False, True)),
        (((b"Expect", b"a miracle"),), BodyFraming(None, False, False)),
        (((b"Accept", b"1"), (b"Content-Lengthy", b"1"), (b"X-Content-Leng", b"1")), BodyFraming(None, False, False)),
    ],
)
def test_the_framing_is_read_from_the_head(fields: RawFields, framing: BodyFraming) -> None:
    assert read_body_framing(fields) == framing


@pytest.mark.parametrize("connection", [b"close, X-Own", b"x-own", b"keep-alive ,X-OWN"])
def test_fields_named_by_connection_are_not_forwarded(connection: bytes) -> None:
    own, kept = (b"X-Own", b"1"), (b"Accept", b"*/*")
    assert drop_hop_by_hop((own, (b"Connection", connection), kept)) == (kept,)
    assert drop_hop_by_hop((kept, (b"connection", connection), (b"Keep-Alive", b"5"), own)) == (kept,)


def test_an_explicit_host_is_sent_once() -> None:
    place = parse_endpoint("http://127.0.0.1:80/a")
    assert build_request("GET", place, [("hOST", "other")], None).head.lower().count(b"host:") == 1
    assert b"\r\nHost: 127.0.0.1:80\r\n" in build_request("GET", place, [("X-Host", "other")], None).head


def test_a_reply_with_close_ends_the_connection() -> None:
    headers = [("Connection", "Close"), ("X-Connection", "close"), ("connection", "X-Own")]
    frame = build_frame(200, headers, 0, method="GET", modern=True, keep_alive=True)
    assert not frame.keep_alive
    assert [line for line in frame.head.split(b"\r\n") if line.lower().startswith(b"connection")] == [
        b"Connection: close"
    ]
