from hypothesis import given
from hypothesis import strategies as st

from holdfast.planes.sse import EventSplitter, format_message

STREAM = b': ping\n\nevent: message\nid: 7\ndata: {"a":\ndata: 1}\n\ndata: x\r\n\r\ndata:y\r\n\n:c\r\rhalf\r\n'


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_events_are_found_however_the_bytes_are_cut(cuts):
    events, found, at = EventSplitter(), [], 0
    for cut in [*sorted(cuts), len(STREAM)]:
        found += events.feed(STREAM[at:cut])
        at = cut
    assert b"".join(one.raw for one in found).strip() == STREAM.removesuffix(b"half\r\n").strip()
    told = [(one.data, one.id) for one in found if one.data]
    assert told == [(b'{"a":\n1}', b"7"), (b"x", b""), (b"y", b"")]


@given(st.binary(max_size=30).filter(lambda data: not data.startswith(b" ")))
def test_an_event_says_what_it_was_given(data):
    (one,) = EventSplitter().feed(format_message(data, b"3"))
    assert one.data.replace(b"\r\n", b"\n").split(b"\n") == data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(
        b"\n"
    )
    assert one.id == b"3"
    assert one.format_with(b"new") == format_message(b"new", b"3")


@given(st.lists(st.integers(0, 400), max_size=6))
def test_an_event_over_the_limit_is_reported_as_such_and_the_next_is_read(cuts):
    stream = b"data: " + b"x" * 300 + b"\n\ndata: y\n\n"
    events, found, at = EventSplitter(100), [], 0
    for cut in [*sorted(min(cut, len(stream)) for cut in cuts), len(stream)]:
        found += events.feed(stream[at:cut])
        assert len(events._partial) <= 100
        at = cut
    assert [(one.is_too_long, one.data) for one in found] == [(True, None), (False, b"y")]
