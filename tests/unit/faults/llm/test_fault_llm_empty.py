import pytest

from holdfast.faults.llm.empty import Empty
from holdfast.faults.llm_text import UnsupportedShape

CHAT = {"choices": [{"message": {"content": "hi"}}], "id": 1}


@pytest.mark.parametrize(
    ("shape", "value", "emptied"),
    [
        ("content", "hi", ""),
        ("content", CHAT, {"choices": [{"message": {"content": ""}}], "id": 1}),
        ("choices", CHAT, {"choices": [], "id": 1}),
        ("message", CHAT, {"choices": [{"message": None}], "id": 1}),
        ("message", {"message": {"content": "hi"}}, {"message": None}),
        ("choices", "hi", ""),
        ("message", "hi", ""),
        ("choices", {"content": "hi"}, {"content": ""}),
        ("message", {"choices": [{"text": "hi"}]}, {"choices": [{"text": ""}]}),
        ("message", None, None),
    ],
)
def test_llm_empty_has_the_shape_it_is_told(meet, shape, value, emptied):
    assert meet(Empty(shape=shape), value) == emptied


def test_llm_empty_refuses_another_shape(meet):
    with pytest.raises(UnsupportedShape):
        meet(Empty(shape="choices"), 5)
