"""What of a reply a format carries: a call that never reached the client is no call of the agent's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.model.completion import Completion, Finish, Text, ToolCall
from holdfast.planes.llm.codecs.anthropic import ANTHROPIC
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.gemini import GEMINI
from holdfast.planes.llm.codecs.ollama import OLLAMA_CHAT
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.openai_responses import OPENAI_RESPONSES
from holdfast.planes.llm.codecs.request import ModelRequest

WHOLE, BROKEN = ToolCall("a", "search", '{"q": 1}'), ToolCall("b", "search", '{"q": ')
OTHER = ToolCall("c", "other", "{}")
REPLY = Completion((Text("Hm."), WHOLE, BROKEN, Finish("tool_calls")), "m", other_calls=(OTHER,))


@pytest.mark.parametrize("codec", [ANTHROPIC, GEMINI, OLLAMA_CHAT, OPENAI_CHAT, OPENAI_RESPONSES], ids=lambda c: c.name)
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_is_delivered_exactly_if_the_client_reads_one(codec: Codec, stream: bool) -> None:
    asked = ModelRequest("m", stream=stream)
    if stream:
        reader = codec.create_reader()
        for frame in codec.write_frames(REPLY, asked):
            assert isinstance(frame, bytes)
            reader.feed(frame)
        got: Any = reader.build_completion()
    else:
        got = codec.read_reply(json.loads(codec.write_body(REPLY, asked)))
    assert [call.name for call in codec.keep_deliverable(REPLY).tool_calls] == [call.name for call in got.tool_calls]


def test_further_calls_stay() -> None:
    assert GEMINI.keep_deliverable(REPLY).other_calls == (OTHER,)
    assert GEMINI.keep_deliverable(REPLY).tool_calls == (WHOLE,)
    assert BROKEN.arguments in OLLAMA_CHAT.keep_deliverable(REPLY).text
