"""Server-sent events, whatever their line ends and wherever they are split."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.planes.llm.codecs.sse import DataEvents, Elements, StreamLines, format_event

STREAM = b": hello\n\nevent: a\ndata: 1\n\ndata:2\ndata:  3\nid: 9\nretry: 5\n\nevent: b\n\nevent: c\ndata\n\n"
READ = [b"1", b"2\n 3", b""]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(bounds)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@given(places=st.lists(st.integers(0, 1_000), max_size=8))
def test_events_are_read_with_any_line_end_and_split_anywhere(end: bytes, places: list[int]) -> None:
    reader, found = DataEvents(), []
    for piece in cut(STREAM.replace(b"\n", end), places):
        found += reader.feed(piece)
    assert found == READ


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@given(places=st.lists(st.integers(0, 1_000), max_size=8))
def test_lines_are_read_with_any_line_end_and_split_anywhere(end: bytes, places: list[int]) -> None:
    reader, lines = StreamLines(), []
    for piece in cut(b'{"a":1}\n\n{"b":2}\n{"c":'.replace(b"\n", end), places):
        lines += reader.feed(piece)
    assert lines == [b'{"a":1}', b'{"b":2}']


def test_a_byte_order_mark_is_not_data() -> None:
    assert DataEvents().feed(b"\xef\xbb\xbfdata: 1\n\n") == [b"1"]


def test_an_event_that_is_not_ended_is_not_told() -> None:
    assert DataEvents().feed(b"data: 1\n") == []


def test_what_is_written_is_read_and_stays_on_one_line() -> None:
    assert DataEvents().feed(format_event({"text": "a\nb\r\nc"}, "x")) == [b'{"text":"a\\nb\\r\\nc"}']


@given(places=st.lists(st.integers(0, 1_000), max_size=8))
def test_the_elements_of_an_array_are_read_split_anywhere(places: list[int]) -> None:
    data = b'[{"a": "}{\\"\\\\"}\r\n,\r\n{"b": {"c": [{}]}},{}]'
    reader, found = Elements(), []
    for piece in cut(data, places):
        found += reader.feed(piece)
    assert found == [b'{"a": "}{\\"\\\\"}', b'{"b": {"c": [{}]}}', b"{}"]
