import pytest
from llm_replies import ASKED, BILL, BOTH
from msgspec.structs import replace

from holdfast.faults.llm.empty import Empty
from holdfast.faults.llm_text import UnsupportedShape
from holdfast.model.completion import Finish

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
        (
            "content",
            {"choices": [{"message": {"content": None, "tool_calls": [{"id": 1}]}}]},
            {"choices": [{"message": {"content": None, "tool_calls": []}}]},
        ),
        (
            "content",
            {"content": [{"type": "tool_use", "id": "a"}, {"type": "text", "text": "hi"}, {"type": "tool_use"}]},
            {"content": [{"type": "text", "text": ""}]},
        ),
        ("content", {"output": [{"type": "function_call", "name": "f"}], "text": "hi"}, {"output": [], "text": ""}),
    ],
)
def test_llm_empty_has_the_shape_it_is_told(meet, shape, value, emptied):
    assert meet(Empty(shape=shape), value) == emptied


def test_llm_empty_refuses_another_shape(meet):
    with pytest.raises(UnsupportedShape):
        meet(Empty(shape="choices"), 5)


@pytest.mark.parametrize("reply", [ASKED, BOTH])
def test_llm_empty_leaves_no_tool_call_on_the_wire(meet, reply):
    assert meet(Empty(), reply) == replace(reply, deltas=(Finish("stop"), BILL))
