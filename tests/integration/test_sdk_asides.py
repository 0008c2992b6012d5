"""What the neutral form does not know reaches the real clients through a stream that a fault has changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import pytest
from gateway_kit import ServedTrial, provider, site_planes
from sdk_voices import genai

from holdfast.model.scenario import Injection

EVENTS = "text/event-stream"
SLOW = Injection("llm", "*", "slow_tokens", {"ttft_ms": 1, "per_token_ms": 1})
SHORTER = Injection("llm", "*", "truncated_response", {"max_tokens": 1})
weathers = pytest.mark.parametrize(("weather", "text"), [(SLOW, "It is sunny."), (SHORTER, "It")], ids=["slow", "cut"])


def sse(*told: Any, named: bool = False) -> bytes:
    return "".join(
        (f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one)}\n\n" for one in told
    ).encode()


@contextmanager
def served(variable: str, stream: bytes, weather: Injection, path: str = "") -> Iterator[ServedTrial]:
    with (
        provider((200, EVENTS, [stream])) as server,
        site_planes(environ={variable: f"{server.url}{path}"}) as place,
        place.sail(weather) as found,
    ):
        yield found
    assert [met.effect for met in found.context.ledger] == ["met"]


@weathers
def test_anthropics_client_gets_thoughts_with_their_signature(weather: Injection, text: str) -> None:
    def block(index: int, start: Any, *deltas: Any) -> list[Any]:
        begun = {"type": "content_block_start", "index": index, "content_block": start}
        told = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        return [begun, *told, {"type": "content_block_stop", "index": index}]

    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    thought = ({"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "EqQB"})
    stream = sse(
        {"type": "message_start", "message": message},
        *block(0, {"type": "thinking", "thinking": "", "signature": ""}, *thought),
        *block(1, {"type": "redacted_thinking", "data": "zzz"}),
        *block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "It is sunny."}),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
        named=True,
    )
    with served("ANTHROPIC_BASE_URL", stream, weather) as found:
        client = anthropic.Anthropic(base_url=found.environ["ANTHROPIC_BASE_URL"], api_key="k")
        asked: Any = [{"role": "user", "content": "?"}]
        with client, client.messages.stream(model="claude-sonnet-4", max_tokens=99, messages=asked) as got:
            said = got.get_final_message()
    kinds = [(part.type, getattr(part, "signature", None) or getattr(part, "data", None)) for part in said.content]
    assert kinds == [("thinking", "EqQB"), ("redacted_thinking", "zzz"), ("text", None)]
    assert said.content[-1].text == text  # type: ignore[union-attr]


@weathers
def test_openais_client_gets_every_choice(weather: Injection, text: str) -> None:
    def chunk(index: int, delta: Any, finish: str | None = None) -> Any:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "gpt-4o", "choices": [choice]}

    both = [chunk(n, {"role": "assistant", "content": ""}) for n in (0, 1)]
    said = [chunk(0, {"content": "It is sunny."}), chunk(1, {"content": "It rains."})]
    stream = sse(*both, *said, *[chunk(n, {}, "stop") for n in (0, 1)]) + b"data: [DONE]\n\n"
    with served("OPENAI_BASE_URL", stream, weather, "/v1") as found:
        client = openai.OpenAI(base_url=found.environ["OPENAI_BASE_URL"], api_key="k")
        texts = ["", ""]
        with client:
            asked: Any = [{"role": "user", "content": "?"}]
            for got in client.chat.completions.create(model="gpt-4o", n=2, stream=True, messages=asked):
                for choice in got.choices:
                    texts[choice.index] += choice.delta.content or ""
    assert texts == [text, "It rains."]


@weathers
def test_openais_responses_client_gets_reasoning_and_the_items_own_ids(weather: Injection, text: str) -> None:
    response: Any = {"id": "resp_1", "object": "response", "created_at": 5, "model": "gpt-5", "status": "in_progress",
                     "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}  # fmt: skip
    reasoning = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "It is sunny.", "annotations": []}
    place = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    done = {**message, "status": "completed", "content": [part]}
    told = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": reasoning},
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        {"type": "response.output_item.added", "output_index": 1, "item": message},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **place, "delta": "It is sunny.", "logprobs": []},
        {"type": "response.output_item.done", "output_index": 1, "item": done},
        {"type": "response.completed", "response": {**response, "status": "completed", "output": [reasoning, done]}},
    ]
    stream = sse(*[{**event, "sequence_number": at} for at, event in enumerate(told)], named=True)
    with served("OPENAI_BASE_URL", stream, weather, "/v1") as found:
        client = openai.OpenAI(base_url=found.environ["OPENAI_BASE_URL"], api_key="k")
        with client, client.responses.stream(model="gpt-5", input="?") as got:
            ends = [event.response for event in got if event.type in ("response.completed", "response.incomplete")]
    items = ends[-1].output
    assert [(item.type, item.id) for item in items] == [("reasoning", "rs_1"), ("message", "msg_1")]
    assert items[0].encrypted_content == "gAAA"  # type: ignore[union-attr]
    assert ends[-1].output_text == text


@weathers
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_googles_client_gets_thoughts_and_signatures(weather: Injection, text: str) -> None:
    def parts(*found: Any, **more: Any) -> Any:
        return {"candidates": [{"content": {"parts": list(found), "role": "model"}, "index": 0, **more}]}

    stream = sse(
        parts({"text": "hm", "thought": True}),
        parts({"text": "It is sunny."}),
        parts({"functionCall": {"name": "w", "args": {}}, "thoughtSignature": "c2ln"}),
        parts({"text": ""}, finishReason="STOP"),
    )
    with served("GOOGLE_GEMINI_BASE_URL", stream, weather) as found:
        where = genai.types.HttpOptions(base_url=found.environ["GOOGLE_GEMINI_BASE_URL"])
        client = genai.Client(api_key="k", http_options=where)
        chunks = list(client.models.generate_content_stream(model="gemini-2.5-flash", contents="?"))
    seen = [part for chunk in chunks for part in (chunk.candidates[0].content.parts or [])]  # type: ignore[index,union-attr]
    assert [part.text for part in seen if part.thought] == ["hm"]
    assert "".join(part.text or "" for part in seen if not part.thought) == text
    if weather is SLOW:
        assert [part.thought_signature for part in seen if part.function_call] == [b"sig"]
