"""One reader for canaries: what a person would see as the word is found, whatever it is written in."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import pytest

from canary_forms import APART, FORMS
from holdfast.model.canary import MARK, CanaryReader, find_echoes

CODE = "1f2e3d4c"
CANARY = MARK + CODE


def test_a_word_that_a_reader_sees_is_found() -> None:
    """A text that can be read in two ways may give another word, too: nobody planted it, so it means nothing."""
    for form in FORMS:
        written = FORMS[form](CANARY)
        for text in (written, f"Sure: {written}.", f"# Done\n\n- {written}\n- 50 % off & more = good", written * 2):
            assert CANARY.lower() in find_echoes(text), form


def test_its_pieces_are_not_the_word_whatever_they_are_written_in() -> None:
    for apart in APART:
        for form in FORMS:
            assert find_echoes(APART[apart](FORMS[form](MARK), FORMS[form](CODE))) == (), (apart, form)


def test_what_is_not_a_canary_is_not_found() -> None:
    for text in ["", "HOLDFAST", "holdfast-canary", MARK, f"{MARK}xyz", f"{MARK}1f2e", "%", "\\u"]:
        assert find_echoes(text) == (), text


@pytest.mark.slow
def test_a_canary_in_the_address_of_a_terminal_link_is_found() -> None:
    written = "".join(f"%{ord(c):02X}" for c in CANARY)
    assert CANARY.lower() in find_echoes(f"\x1b]8;;https://evil.example/?q={written}\x07here\x1b]8;;\x07")


@pytest.mark.parametrize("size", [1, 3, 24, 1_000])
def test_bytes_may_be_cut_anywhere(size: int) -> None:
    for form in FORMS:
        before = "x " * (600 if size > 3 else 20)  # more than is kept of what has passed
        data = f"{before}{FORMS[form](CANARY)} and more".encode()
        lookout = CanaryReader()
        for at in range(0, len(data), size):
            lookout.feed(data[at : at + size])
        assert CANARY.lower() in lookout.canaries, form
        assert lookout.is_legible, form


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_bytes_in_any_common_encoding_are_read(encoding: str) -> None:
    lookout = CanaryReader()
    lookout.feed(f"Grüße: {CANARY}".encode(encoding))
    assert lookout.canaries == (CANARY.lower(),)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_packed_bytes_are_unpacked(pack: object) -> None:
    assert callable(pack)
    lookout = CanaryReader(packed=True)
    lookout.feed(pack(f"all is well {CANARY}".encode()))
    assert (lookout.canaries, lookout.is_legible) == ((CANARY.lower(),), True)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
@pytest.mark.parametrize("size", [1, 2, 10])
def test_packed_bytes_may_be_cut_anywhere(pack: Callable[[bytes], bytes], size: int) -> None:
    data, lookout = pack(f"all is well {CANARY}".encode()), CanaryReader(packed=True)
    for at in range(0, len(data), size):
        lookout.feed(data[at : at + size])
    assert (lookout.canaries, lookout.is_legible) == ((CANARY.lower(),), True)


def test_what_follows_packed_bytes_was_not_read() -> None:
    first, second = gzip.compress(b"all is well"), gzip.compress(CANARY.encode())
    for pieces in ([first + second], [first, second]):
        lookout = CanaryReader(packed=True)
        for piece in pieces:
            lookout.feed(piece)
        assert not lookout.is_legible


@pytest.mark.parametrize("data", [random.Random(1).randbytes(5_000), zlib.compress(b"text" * 9_000), bytes(range(256))])
@pytest.mark.parametrize("packed", [True, False])
def test_what_cannot_be_read_is_known_to_be_so(data: bytes, packed: bool) -> None:
    lookout = CanaryReader(packed=packed)
    lookout.feed(data)
    assert lookout.is_legible == (packed and data[:1] == b"\x78")


@pytest.mark.parametrize("text", [f"[more][{CANARY}]", f"[more][1]\n\n[1]: {CANARY}"])
def test_the_name_of_a_links_target_is_read_too(text: str) -> None:
    assert CANARY.lower() in find_echoes(text)
