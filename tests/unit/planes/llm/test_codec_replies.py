"""What of a reply a format carries: a call that never reached the client is no call of the agent's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codec_kit import ASKED, CODECS, events, read, sent, streamed
from holdfast.model.completion import Completion, Finish, Text, ToolCall, Usage
from holdfast.planes.llm.codecs.anthropic import ANTHROPIC
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.error_replies import write_error_reply
from holdfast.planes.llm.codecs.gemini import GEMINI
from holdfast.planes.llm.codecs.ollama import OLLAMA_CHAT
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.openai_responses import OPENAI_RESPONSES
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.sse import format_event, read_elements, read_events, read_lines
from holdfast.planes.llm.codecs.streamed_reply import OriginalStream
from holdfast.protocols.fault import Failed

WHOLE, BROKEN = ToolCall("a", "search", '{"q": 1}'), ToolCall("b", "search", '{"q": ')
OTHER = ToolCall("c", "other", "{}")
REPLY = Completion((Text("Hm."), WHOLE, BROKEN, Finish("tool_calls")), "m", other_calls=(OTHER,))


@pytest.mark.parametrize("codec", [ANTHROPIC, GEMINI, OLLAMA_CHAT, OPENAI_CHAT, OPENAI_RESPONSES], ids=lambda c: c.name)
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_is_delivered_exactly_if_the_client_reads_one(codec: Codec, stream: bool) -> None:
    asked = ModelRequest("m", stream=stream)
    if stream:
        received: Any = read(codec, sent(codec.write_frames(REPLY, asked)))
    else:
        received = codec.read_reply(json.loads(codec.write_body(REPLY, asked)))
    assert [call.name for call in codec.keep_deliverable(REPLY).tool_calls] == [
        call.name for call in received.tool_calls
    ]


def test_further_calls_stay() -> None:
    assert GEMINI.keep_deliverable(REPLY).other_calls == (OTHER,)
    assert GEMINI.keep_deliverable(REPLY).tool_calls == (WHOLE,)
    assert BROKEN.arguments in OLLAMA_CHAT.keep_deliverable(REPLY).text


# A streamed call in pieces: what one piece leaves out, a later one may say.


FIRST = {"index": 0, "id": "c1", "function": {"name": "find", "arguments": '{"q"'}}
REST = {"index": 0, "function": {"arguments": ": 1}"}}


def without(piece: dict[str, Any], *, id: bool = False, name: bool = False) -> dict[str, Any]:
    function = {k: v for k, v in piece["function"].items() if not (name and k == "name")}
    return {k: v for k, v in piece.items() if not (id and k == "id")} | {"function": function}


@pytest.mark.parametrize(
    "pieces",
    [
        (FIRST, REST),
        (without(FIRST, id=True), REST | {"id": "c1"}),
        (without(FIRST, name=True), REST | {"function": {"name": "find", "arguments": ": 1}"}}),
        (FIRST, FIRST | {"function": {"name": "other", "arguments": ": 1}"}}),
    ],
    ids=["id and name first", "id later", "name later", "another name later"],
)
def test_a_call_has_the_first_id_and_the_first_name_that_any_piece_has(pieces: tuple[dict[str, Any], ...]) -> None:
    said = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in said) + "data: [DONE]\n\n"
    assert read(CODECS["openai_chat"], data.encode()).tool_calls == (ToolCall("c1", "find", '{"q": 1}'),)


def test_another_id_at_the_same_index_is_another_call() -> None:
    whole = {"index": 0, "function": {"name": "find", "arguments": "{}"}}
    said = [{"choices": [{"delta": {"tool_calls": [whole | {"id": id}]}}]} for id in ("c1", "c2")]
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in said) + "data: [DONE]\n\n"
    found = read(CODECS["openai_chat"], data.encode()).tool_calls
    assert [call.id for call in found] == ["c1", "c2"]


# A changed reply keeps what the provider said and nobody changed.


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
def test_an_unchanged_reply_is_written_unchanged(name: str) -> None:
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
def test_an_empty_text_keeps_calls_and_thoughts(name: str) -> None:
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
    before = codec.read_reply(REPLIES[name])
    calls = (ToolCall(before.tool_calls[0].id, "v", '{"a":1}'), ToolCall("c9", "x", "{}"))
    kept = [delta for delta in before.deltas if not isinstance(delta, ToolCall)]
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
    completion = Completion((Text("x"), Finish("stop"), usage), "m")
    assert codec.read_reply(json.loads(codec.write_body(completion, ASKED))).usage == usage
    assert read(codec, streamed(codec, completion)).usage == usage


def test_tokens_written_to_a_cache_are_distinguished() -> None:
    codec, usage = CODECS["anthropic"], Usage(70, 30, 40, 20)
    completion = Completion((Text("x"), Finish("stop"), usage), "m")
    assert codec.read_reply(json.loads(codec.write_body(completion, ASKED))).usage == usage
    assert read(codec, streamed(codec, completion)).usage == usage


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
    sent_events = events(streamed(CODECS[name], Completion((Text("new"),), "m"), like=OriginalStream(first=first)))
    head = sent_events[0].get("response") or sent_events[0].get("message") or sent_events[0]
    kept = first.get("response") or first.get("message") or {k: v for k, v in first.items() if k != "candidates"}
    assert {key: head[key] for key in kept if key != "choices"} == {k: v for k, v in kept.items() if k != "choices"}


def test_another_model_in_a_stream_is_named_in_it() -> None:
    like = OriginalStream(first={"id": "chatcmpl-9", "created": 9, "model": "m"})
    sent_events = events(streamed(CODECS["openai_chat"], Completion((Text("new"),), "smaller"), like=like))
    assert {chunk["model"] for chunk in sent_events} == {"smaller"}


# Errors in each provider's words.


PROVIDERS = ["openai", "anthropic", "google", "ollama"]


@pytest.mark.parametrize(
    ("failed", "status"),
    [
        (Failed("x"), 500),
        (Failed("x", status=502), 502),
        (Failed("x", status=418), 418),
        (Failed("x", kind="rate_limit"), 429),
        (Failed("x", kind="quota"), 429),
        (Failed("x", kind="server_error"), 500),
        (Failed("x", kind="server_error", status=504), 504),
        (Failed("x", kind="context_length"), 400),
        (Failed("x", kind="auth"), 401),
        (Failed("x", kind="html"), 502),
        (Failed("x", kind="a_plug_in's"), 500),
    ],
)
def test_the_status_of_each_kind(failed: Failed, status: int) -> None:
    for provider in PROVIDERS:
        assert write_error_reply(provider, failed).status == status, provider


@pytest.mark.parametrize("status", [None, 503, 529])
def test_overloaded_has_each_providers_own_status(status: int | None) -> None:
    failed = Failed("x", status=status, kind="overloaded")
    assert [write_error_reply(provider, failed).status for provider in PROVIDERS] == [503, 529, 503, 503]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_retry_after_is_sent_only_if_it_is_known(provider: str) -> None:
    assert dict(write_error_reply(provider, Failed("x", status=429, retry_after_s=1.0)).headers)["retry-after"] == "1"
    assert "retry-after" not in dict(write_error_reply(provider, Failed("x", status=429)).headers)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_page_of_a_gateway_is_the_same_for_every_provider(provider: str) -> None:
    page = write_error_reply(provider, Failed("x", status=504, kind="html"))
    assert dict(page.headers)["content-type"] == "text/html"
    assert b"<title>504 Gateway Timeout</title>" in page.body
    assert write_error_reply(provider, Failed("x", kind="html", body="<p>own</p>")).body == b"<p>own</p>"


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server_error", "auth"])
def test_an_error_body_reads_back_as_its_kind(name: str, kind: str) -> None:
    if name.startswith("ollama"):  # whose errors are bare texts
        return
    body = json.loads(CODECS[name].write_error_reply(Failed("x", kind=kind)).body)
    assert [getattr(delta, "kind", None) for delta in CODECS[name].read_reply(body).deltas] == [kind]


# Server-sent events, whatever their line ends and wherever they are split.


STREAM = b": hello\n\nevent: a\ndata: 1\n\ndata:[2\ndata:  3]\nid: 9\nretry: 5\n\nevent: b\n\nevent: c\ndata\n\n"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_and_lines_are_read_with_any_line_end(end: bytes) -> None:
    assert list(read_events(STREAM.replace(b"\n", end).replace(b"[2", b"[2,"))) == [1, [2, 3], None]
    assert list(read_lines(b'{"a":1}\n\n{"b":2}\n{"c":'.replace(b"\n", end))) == [{"a": 1}, None, {"b": 2}, None]


def test_a_byte_order_mark_is_not_data() -> None:
    assert list(read_events(b"\xef\xbb\xbfdata: 1\n\n")) == [1]


def test_an_incomplete_event_is_not_read() -> None:
    assert list(read_events(b"data: 1\n")) == []


def test_a_written_event_is_one_line_and_reads_back() -> None:
    data = format_event({"text": "a\nb\r\nc"}, "x")
    assert data.count(b"\n") == 3
    assert list(read_events(data)) == [{"text": "a\nb\r\nc"}]


def test_the_elements_of_an_array_are_read_as_far_as_they_are_complete() -> None:
    data = b'[{"a": "}{\\"\\\\"}\r\n,\r\n{"b": {"c": [{}]}},{}]'
    assert list(read_elements(data)) == [{"a": '}{"\\'}, {"b": {"c": [{}]}}, {}]
    assert list(read_elements(data[:-6])) == [{"a": '}{"\\'}]
