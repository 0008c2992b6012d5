import pytest

from holdfast.faults.llm.truncated_response import TruncatedResponse
from holdfast.faults.llm_text import UnsupportedShape

LONG = "one two three four five six seven eight nine ten eleven twelve"


def reply(content, reason):
    return {"choices": [{"message": {"content": content}, "finish_reason": reason}]}


def test_truncated_response_cuts_after_ten_tokens_by_default(meet):
    assert meet(TruncatedResponse(), LONG).split() == LONG.split()[:10]


def test_truncated_response_says_length_where_the_format_can(meet):
    assert meet(TruncatedResponse(max_tokens=2), reply(LONG, "stop")) == reply("one two", "length")
    anthropic = {"content": [{"type": "text", "text": LONG}], "stop_reason": "end_turn"}
    assert meet(TruncatedResponse(max_tokens=1), anthropic)["stop_reason"] == "max_tokens"


def test_a_silent_truncation_claims_a_normal_stop(meet):
    assert meet(TruncatedResponse(max_tokens=2, silent=True), reply(LONG, "stop")) == reply("one two", "stop")


@pytest.mark.parametrize("value", ["short", "", reply("short", "stop"), reply(None, "tool_calls"), None])
def test_truncated_response_has_no_effect_on_a_shorter_text(meet, value):
    assert meet(TruncatedResponse(), value) is value


def test_truncated_response_refuses_another_shape(meet):
    with pytest.raises(UnsupportedShape, match=r"builtins\.int"):
        meet(TruncatedResponse(), 5)
