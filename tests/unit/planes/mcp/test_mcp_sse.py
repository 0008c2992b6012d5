from hypothesis import given
from hypothesis import strategies as st

from holdfast.planes.mcp.sse import Events, event

STREAM = b': ping\n\nevent: message\nid: 7\ndata: {"a":\ndata: 1}\n\ndata: x\r\n\r\ndata:y\n\nhalf'


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_events_are_found_however_the_bytes_are_cut(cuts):
    events, found, at = Events(), [], 0
    for cut in [*sorted(cuts), len(STREAM)]:
        found += events.feed(STREAM[at:cut])
        at = cut
    assert b"".join(one.raw for one in found) + events.rest == STREAM
    assert [(one.data, one.id) for one in found if one.data] == [(b'{"a":\n1}', b"7"), (b"x", b""), (b"y", b"")]


@given(st.binary(max_size=30).filter(lambda data: not data.startswith(b" ")))
def test_an_event_says_what_it_was_given(data):
    (one,) = Events().feed(event(data, b"3"))
    assert one.data.replace(b"\r\n", b"\n").split(b"\n") == data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(
        b"\n"
    )
    assert one.id == b"3"
    assert one.saying(b"new") == event(b"new", b"3")
