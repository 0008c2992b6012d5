"""What a terminal shows, as plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.processes.terminal import PlainScreen


def plain(*pieces: bytes) -> bytes:
    screen = PlainScreen()
    return b"".join([screen.strip_codes(piece) for piece in pieces]) + screen.flush()


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (b"\x1b[1;32mok\x1b[0m\r\n", b"ok\n"),
        (b"\x1b]0;a title\x07said", b"said"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", b"link"),
        (b"\x1b[?25l10%\r20%\r\r\n", b"10%\n20%\n"),
        (b"a\x08b\x07\tc\x1b(B", b"ab\tc"),
        ("grün ✔".encode(), "grün ✔".encode()),
    ],
)
def test_codes_are_taken_out(shown: bytes, text: bytes) -> None:
    assert plain(shown) == text


@given(at=st.integers(0, 60), other=st.integers(0, 60))
def test_however_it_is_cut(at: int, other: int) -> None:
    shown = b"\x1b[1mgo\x1b[0m\r\n\x1b]0;title\x07\x1b]8;;u\x1b\\on\r\nand\ron\r\n\x1b[2Kend\r"
    first, second = sorted((at, other))
    assert plain(shown[:first], shown[first:second], shown[second:]) == plain(shown)


def test_an_end_that_never_comes_holds_nothing_back() -> None:
    assert plain(b"a\x1b]" + b"x" * 10_000 + b"b").endswith(b"xb")
