"""Every fault of the model can be sent in every provider's format, plain and streamed, and is seen there."""

from random import Random

import msgspec
import pytest

from codec_kit import read
from holdfast import plugins
from holdfast.faults.llm.malformed_tool_call import MalformedToolCall
from holdfast.faults.llm.overloaded import Overloaded
from holdfast.faults.llm.server_error import ServerError
from holdfast.faults.llm.wrong_args import WrongArgs
from holdfast.model.completion import Completion, Cut, Finish, Text, ToolCall, Usage
from holdfast.planes.llm.codecs import formats
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.protocols.fault import Call, Failed, FaultContext, Reply, TimedOut

PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
    "ollama_chat": "/api/chat",
    "ollama_generate": "/api/generate",
}
FAULTS = {name: msgspec.convert({}, plugin) for name, plugin in plugins.list_plugins("faults.llm")}
FAULTS |= {"overloaded in a stream": Overloaded(shape="stream_error"), "html": ServerError(body="html")}
CALL = ToolCall("call_1", "find_item", '{"name": "kettle"}')
SAID = "A kettle costs 42 euros in the shop around the corner, é, and no more than that."
REPLIES = {
    "text": Completion((Text(SAID[:30]), Text(SAID[30:]), Finish("stop"), Usage(20, 18)), model="gpt-4o"),
    "call": Completion((CALL, Finish("tool_calls"), Usage(20, 8)), model="gpt-4o"),
}


def met(fault, reply, stream):
    """What the fault makes of the reply, at its second firing: a Completion or a failure."""

    async def forward(call):
        return Reply(reply)

    async def sleep(ms):
        pass

    received, memory = None, {}
    for n in (1, 2):
        call = Call("llm", "gpt-4o", {"stream": stream, "tools": ["find_item"]}, n)
        try:
            fault.apply(call, forward, FaultContext(Random(n), sleep, n, memory)).send(None)
        except StopIteration as done:
            received = done.value.value
        except Failed as failed:
            received = failed
    return received


def codec_of(name):
    route = formats.find_route("POST", PATHS[name])
    assert route is not None
    assert route.codec is not None
    assert route.codec.name == name
    return route.codec


@pytest.mark.parametrize("format", PATHS)
@pytest.mark.parametrize("kind", REPLIES)
@pytest.mark.parametrize("mode", FAULTS)
def test_a_fault_can_be_sent_in_every_format(mode, kind, format):
    codec = codec_of(format)
    plain, streamed = (met(FAULTS[mode], REPLIES[kind], stream) for stream in (False, True))
    asked = ModelRequest("gpt-4o", stream=True)
    if isinstance(plain, Failed):
        refusal = codec.write_error_reply(plain)
        assert isinstance(plain, TimedOut) or 400 <= refusal.status < 600
        assert refusal.body
        return
    msgspec.json.decode(codec.write_body(plain, msgspec.structs.replace(asked, stream=False)))
    frames = list(codec.write_frames(streamed, asked))
    cut = any(isinstance(delta, Cut) for delta in streamed.deltas)
    assert [frame for frame in frames if isinstance(frame, Cut)] == [Cut()] * cut
    received = read(codec, b"".join([frame for frame in frames if isinstance(frame, bytes)]))
    if codec.provider != "ollama" or mode != "malformed_tool_call":  # a call that Ollama cannot read, it sends as text
        assert received.text == (streamed.text if not streamed.lacks else "")


@pytest.mark.parametrize("format", PATHS)
@pytest.mark.parametrize("fault", [MalformedToolCall(), MalformedToolCall(shape="not_object"), WrongArgs()])
def test_what_is_wrong_with_a_call_shows_in_every_format_that_has_calls(fault, format):
    codec = codec_of(format)
    asked, right = ModelRequest("gpt-4o"), REPLIES["call"]
    wrong = codec.write_body(met(fault, right, False), asked)
    if format != "ollama_generate":
        assert wrong != codec.write_body(right, asked)
        assert codec.read_reply(msgspec.json.decode(wrong)).tool_calls != right.tool_calls
