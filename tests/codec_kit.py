"""What tests of the codecs share: every codec, and replies for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from holdfast.model.completion import Completion, Cut, Finish, Pause, Text, ToolCall, Usage
from holdfast.planes.llm.codecs.anthropic import ANTHROPIC
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.gemini import GEMINI, GEMINI_ARRAY
from holdfast.planes.llm.codecs.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.openai_responses import OPENAI_RESPONSES
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.sse import StreamFrame
from holdfast.planes.llm.codecs.streamed_reply import NOTHING, OriginalStream

CODECS: dict[str, Codec] = {
    "openai_chat": OPENAI_CHAT,
    "openai_responses": OPENAI_RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "gemini_array": GEMINI_ARRAY,
    "ollama_chat": OLLAMA_CHAT,
    "ollama_generate": OLLAMA_GENERATE,
}
ASKED = ModelRequest("model-1")

SUNNY = Completion((Text("It is "), Text("sunny — 21 °C."), Finish("stop"), Usage(12, 7)), "model-1")
CALLING = Completion(
    (
        Text("Let me look."),
        ToolCall("call_1", "weather", '{"city":"Zürich","days":3}'),
        ToolCall("call_2", "clock", "{}"),
        Finish("tool_calls"),
        Usage(20, 9),
    ),
    "model-1",
)


def sent(frames: Iterable[StreamFrame]) -> bytes:
    """The bytes of a stream, up to where it is cut; pauses take no time."""
    data = b""
    for frame in frames:
        if isinstance(frame, Cut):
            break
        data += b"" if isinstance(frame, Pause) else frame
    return data


def streamed(
    codec: Codec, completion: Completion, asked: ModelRequest = ASKED, like: OriginalStream = NOTHING
) -> bytes:
    return sent(codec.write_frames(completion, asked, like))


def read(codec: Codec, data: bytes) -> Completion:
    """A stream as the codec reads it."""
    return codec.read_stream(data).build_completion()


def events(data: bytes) -> list[Any]:
    """The JSON of every event of a stream of server-sent events."""
    lines = [line for line in data.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


_words = st.text(max_size=20)
_names = st.text("abcxyz_", min_size=1, max_size=8)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=5,
)
_arguments = st.dictionaries(_words, _values, max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
)
_counts = st.integers(0, 2**40)


@st.composite
def completions(draw: st.DrawFn) -> Completion:
    """Any reply that every format can carry."""
    texts = [Text(text) for text in draw(st.lists(st.text(min_size=1, max_size=20), max_size=4))]
    made = draw(st.lists(st.tuples(_names, _arguments), max_size=3))
    calls = [ToolCall(f"call_{at}", name, arguments) for at, (name, arguments) in enumerate(made)]
    parts = draw(st.permutations([*texts, *calls]))
    ends: list[Any] = draw(st.sampled_from([[], ["stop"], ["length"], ["tool_calls"], ["content_filter"]]))
    usage = draw(st.none() | st.builds(Usage, _counts, _counts))
    calls_in_order = iter(calls)
    ordered = [next(calls_in_order) if isinstance(part, ToolCall) else part for part in parts]
    return Completion((*ordered, *map(Finish, ends), *([usage] if usage else [])), "model-1")
