import pytest
from llm_replies import ASKED, BILL, BOTH, SAID
from msgspec.structs import replace

from holdfast.faults.llm.empty import Empty
from holdfast.model.completion import Finish


@pytest.mark.parametrize("reply", [ASKED, BOTH])
def test_llm_empty_leaves_no_tool_call_on_the_wire(meet, reply):
    assert meet(Empty(), reply) == replace(reply, deltas=(Finish("stop"), BILL))


@pytest.mark.parametrize("shape", ["choices", "message"])
def test_llm_empty_removes_the_choices_or_the_message(meet, shape):
    assert meet(Empty(shape=shape), SAID) == replace(SAID, lacks=shape)
