"""A changed reply keeps what the provider said and nobody changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codec_kit import ASKED, CODECS, events, read, streamed
from holdfast.model.completion import Completion, Finish, Text, ToolCall, Usage
from holdfast.planes.llm.codecs.streamed_reply import OriginalStream

REPLIES: dict[str, Any] = json.loads(Path(__file__).with_name("provider_replies.json").read_text())
"""By format: a reply with fields that no codec reads."""
every_format = pytest.mark.parametrize("name", REPLIES)


def rewritten(name: str, completion: Completion) -> Any:
    return json.loads(CODECS[name].write_body(completion, ASKED, REPLIES[name]))


def differing(old: Any, new: Any, at: str = "") -> list[str]:
    """The places where two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [place for key in {**old, **new} for place in differing(old.get(key), new.get(key), f"{at}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [place for i, (a, b) in enumerate(zip(old, new, strict=True)) for place in differing(a, b, f"{at}[{i}]")]
    return [] if old == new else [at]


@every_format
def test_nothing_changes_where_nothing_was_changed(name: str) -> None:
    again = rewritten(name, CODECS[name].read_reply(REPLIES[name]))
    assert [place for place in differing(REPLIES[name], again) if not place.endswith((".refusal", ".index"))] == []


@every_format
def test_another_text_changes_only_the_text(name: str) -> None:
    again = rewritten(name, CODECS[name].read_reply(REPLIES[name]).with_text("new"))
    places = [place for place in differing(REPLIES[name], again) if not place.endswith((".refusal", ".index"))]
    assert len(places) == 1
    assert places[0].endswith(("content", "text"))
    assert CODECS[name].read_reply(again).text == "new"


@every_format
def test_no_text_leaves_the_calls_and_the_thoughts(name: str) -> None:
    codec = CODECS[name]
    again = codec.read_reply(rewritten(name, codec.read_reply(REPLIES[name]).with_text("")))
    assert (again.text, again.tool_calls) == ("", codec.read_reply(REPLIES[name]).tool_calls)
    assert (
        b'"hm"' in codec.write_body(codec.read_reply(REPLIES[name]).with_text(""), ASKED, REPLIES[name])
        or name == "openai_responses"
    )


@every_format
def test_another_call_keeps_the_fields_around_it(name: str) -> None:
    codec = CODECS[name]
    was = codec.read_reply(REPLIES[name])
    calls = (ToolCall(was.tool_calls[0].id, "v", '{"a":1}'), ToolCall("c9", "x", "{}"))
    kept = [delta for delta in was.deltas if not isinstance(delta, ToolCall)]
    body = codec.write_body(Completion((*kept, *calls), "m"), ASKED, REPLIES[name])
    assert codec.read_reply(json.loads(body)).tool_calls == calls
    beside = {"openai_chat": b'"extra":1', "openai_responses": b'"namespace":"n"', "anthropic": b'"direct"'}
    assert beside.get(name, b"") in body


@every_format
def test_no_calls_leaves_none(name: str) -> None:
    codec = CODECS[name]
    kept = [delta for delta in codec.read_reply(REPLIES[name]).deltas if not isinstance(delta, ToolCall)]
    again = codec.read_reply(rewritten(name, Completion(tuple(kept), "m").with_finish("stop")))
    assert (again.text, again.tool_calls, again.finish) == ("old", (), "stop")


@every_format
def test_finish_and_usage_and_model_can_be_changed(name: str) -> None:
    codec = CODECS[name]
    kept = [delta for delta in codec.read_reply(REPLIES[name]).deltas if not isinstance(delta, Usage)]
    changed = Completion((*kept, Usage(70, 30)), "smaller").with_finish("length")
    again = codec.read_reply(rewritten(name, changed))
    assert (again.finish, again.usage, again.model) == ("length", Usage(70, 30), "smaller")


def test_cached_and_thinking_tokens_are_counted() -> None:
    assert CODECS["anthropic"].read_reply(REPLIES["anthropic"]).usage == Usage(5, 2, 4)
    assert CODECS["gemini"].read_reply(REPLIES["gemini"]).usage == Usage(5, 2)
    assert CODECS["openai_chat"].read_reply(REPLIES["openai_chat"]).usage == Usage(1, 2, 1)
    assert CODECS["openai_responses"].read_reply(REPLIES["openai_responses"]).usage == Usage(1, 2, 1)


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic", "gemini"])
def test_cached_tokens_survive_a_changed_bill(name: str) -> None:
    codec, usage = CODECS[name], Usage(70, 30, 40)
    told = Completion((Text("x"), Finish("stop"), usage), "m")
    assert codec.read_reply(json.loads(codec.write_body(told, ASKED))).usage == usage
    assert read(codec, streamed(codec, told)).usage == usage


def test_tokens_written_to_a_cache_are_distinguished() -> None:
    codec, usage = CODECS["anthropic"], Usage(70, 30, 40, 20)
    told = Completion((Text("x"), Finish("stop"), usage), "m")
    assert codec.read_reply(json.loads(codec.write_body(told, ASKED))).usage == usage
    assert read(codec, streamed(codec, told)).usage == usage


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("openai_chat", {"id": "chatcmpl-9", "created": 9, "model": "m", "system_fingerprint": "fp", "choices": []}),
        ("openai_responses", {"type": "response.created", "response": {"id": "resp_9", "created_at": 9, "model": "m"}}),
        ("anthropic", {"type": "message_start", "message": {"id": "msg_9", "role": "assistant", "model": "m"}}),
        ("gemini", {"candidates": [], "responseId": "r9", "modelVersion": "m", "createTime": "9"}),
    ],
)
def test_a_changed_stream_keeps_id_model_and_time(name: str, first: Any) -> None:
    told = events(streamed(CODECS[name], Completion((Text("new"),), "m"), like=OriginalStream(first=first)))
    head = told[0].get("response") or told[0].get("message") or told[0]
    kept = first.get("response") or first.get("message") or {k: v for k, v in first.items() if k != "candidates"}
    assert {key: head[key] for key in kept if key != "choices"} == {k: v for k, v in kept.items() if k != "choices"}


def test_another_model_in_a_stream_is_named_in_it() -> None:
    like = OriginalStream(first={"id": "chatcmpl-9", "created": 9, "model": "m"})
    told = events(streamed(CODECS["openai_chat"], Completion((Text("new"),), "smaller"), like=like))
    assert {chunk["model"] for chunk in told} == {"smaller"}
