from dataclasses import dataclass

import pytest

from holdfast.faults.tools.empty import Empty


@dataclass
class Page:
    rows: list
    total: int


@dataclass
class Quote:
    price: float


@pytest.mark.parametrize(
    ("value", "emptied"),
    [
        ([1, 2], []),
        ((1, 2), ()),
        ({1, 2}, set()),
        ({"price": 1}, {}),
        ({"results": [1], "total": 1}, {"results": [], "total": 1}),
        ({"a": [1], "b": [2]}, {}),
        ("text", ""),
        ("[1, 2]", "[]"),
        ('{"a": 1}', "{}"),
        ('{"rows":[1],"n":1}', '{"rows":[],"n":1}'),
        (b"bytes", b""),
        (b"\xff\x00", b""),
        (b"[1]", b"[]"),
        (Page([1], 1), Page([], 1)),
        (Quote(1.0), None),
        (5, None),
        (None, None),
    ],
)
def test_empty_keeps_the_kind_of_the_reply(meet, value, emptied):
    received = meet(Empty(), value)
    assert received == emptied
    assert type(received) is type(emptied)
