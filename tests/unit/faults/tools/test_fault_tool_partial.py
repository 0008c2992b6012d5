from dataclasses import dataclass

import pytest

from holdfast.faults.tools.partial import Partial


@dataclass
class Page:
    total: int
    rows: list


@pytest.mark.parametrize(
    ("value", "first"),
    [
        ([1, 2, 3], [1]),
        ((1, 2), (1,)),
        ({"total": 3, "rows": [1, 2, 3]}, {"total": 3, "rows": [1]}),
        ({"data": {"items": [1, 2]}}, {"data": {"items": [1]}}),
        ({"one": [1], "many": [1, 2]}, {"one": [1], "many": [1]}),
        ("[1,2,3]", "[1]"),
        (Page(2, [1, 2]), Page(2, [1])),
        ("12345678", "1234"),
        (b"12345678", b"1234"),
        (b"\xff\xfe\xfd\xfc", b"\xff\xfe"),
    ],
)
def test_partial_is_the_first_page(meet, value, first):
    assert meet(Partial(), value) == first


def test_partial_keeps_as_much_as_it_is_told(meet):
    assert meet(Partial(keep=2), [1, 2, 3]) == [1, 2]
    assert meet(Partial(keep=0), [1]) == []
    assert meet(Partial(fraction=0.25), "12345678") == "12"


@pytest.mark.parametrize("value", [[1], {}, {"a": 1}, 5, None, '{"a": [1]}'])
def test_partial_of_one_page_has_no_effect(meet, value):
    assert meet(Partial(), value) is value
