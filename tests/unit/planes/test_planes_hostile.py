"""Requests that no client would send: 400 to the client, a note of the trial, and the trial goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.model.codec import encode
from holdfast.model.observation import Answer
from holdfast.model.scenario import Injection
from hostile_requests import Planes, planes, send, status

CHAT = b"openai/v1/chat/completions"
FAULTS = [
    Injection("http", "*", "latency", {"latency_ms": 1}),
    Injection("llm", "*", "truncated_response"),
    Injection("tool", "*", "malformed"),
]


@pytest.fixture(scope="module", params=["calm", "faults"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planes]:
    with planes(tmp_path_factory.mktemp("planes"), FAULTS if request.param == "faults" else ()) as opened:
        yield opened


@pytest.fixture
def trial(shared: Planes) -> Iterator[Planes]:
    """The planes with nothing in their books; whatever a test sends, none of them broke."""
    for book in (shared.context.troubles, shared.context.notes, shared.context.ledger, shared.context.trace):
        book.clear()  # type: ignore[attr-defined]  # lists, each of its own kind
    yield shared
    assert shared.broken == []
    encode(shared.context.observe(Answer(())))  # all of it can be stored


UNREADABLE = [
    b"http://[::1", b"http://[::1]:x/", b"http://a:99999/", b"http://a:-1/", b"http://[v1.a/", b"http://", b"http:///x",
    b"ftp://a/", b"http://a\xef\xbc\x8fb/", b"http://:80/", b"http://[]/", b"http://a]/",
]  # fmt: skip


@pytest.mark.parametrize("target", UNREADABLE)
def test_a_url_that_cannot_be_read_gets_400_and_is_noted(trial: Planes, target: bytes) -> None:
    assert status(trial.proxied(target)) == 400
    assert "400" in " ".join(trial.context.notes)


@pytest.mark.parametrize("target", UNREADABLE)
def test_so_does_one_that_is_sent_to_a_host_we_stand_for(trial: Planes, target: bytes) -> None:
    assert status(trial.stood(target)) == 400
    assert "400" in " ".join(trial.context.notes)


@pytest.mark.parametrize(
    "target",
    [b"a", b"a:", b":1", b"a:0", b"a:99999", b"a:-1", b"a:x", b"[::1:1", b"[::1]", b"user@a:1", b"a:1/x", b"[v1.a:443"],
)
def test_so_does_connect_to_what_is_not_a_place(trial: Planes, target: bytes) -> None:
    assert status(trial.proxied(target, method=b"CONNECT")) == 400
    assert "400" in " ".join(trial.context.notes)


@pytest.mark.parametrize(
    "host", [b"a..b", b".a", b"a" * 70 + b".com", b"%00", b"a%00b", b"xn--a", b"a." * 200, b"1.2.3.4.5", b"a:0"]
)
def test_a_name_that_cannot_be_resolved_is_turned_away(trial: Planes, host: bytes) -> None:
    assert status(trial.proxied(b"http://%b/" % host)) in (400, 502)
    assert status(trial.proxied(b"%b:443" % host, method=b"CONNECT")) in (400, 502)
    assert trial.context.notes


@pytest.mark.parametrize(
    "fields",
    [
        b"content-length: -1\r\n", b"content-length: x\r\n", b"content-length: 5\r\ncontent-length: 6\r\n",
        b"content-length: 99999999999999999999999\r\n", b"x\x00y: z\r\n", b"x: a\rb\r\n", b"x y: z\r\n", b"\xff: z\r\n",
        b": z\r\n", b"host: a\x00b\r\n",
    ],
)  # fmt: skip
def test_a_head_that_cannot_be_read_gets_400_and_is_noted(trial: Planes, fields: bytes) -> None:
    got = [trial.proxied(b"http://127.0.0.1:9/", fields), trial.own(CHAT, fields), trial.stood(b"/", fields)]
    assert list(map(status, got)) == [400, 400, 400]
    assert "400" in " ".join(trial.context.notes)


@pytest.mark.parametrize(
    "data",
    [b"\r\n\r\nx", b"GET\r\n\r\n", b"\xff / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05\xff",
     b"GET http://\xff/ HTTP/1.1\r\n\r\n", b"GET /a b HTTP/1.1\r\n\r\n", b"\x00" * 100],
)  # fmt: skip
def test_a_request_line_that_is_none_gets_400_and_is_noted(trial: Planes, data: bytes) -> None:
    assert status(send(trial.address.port, data)) == 400
    assert "400" in " ".join(trial.context.notes)


HALF = "\\ud800"
TOOL = {"id": HALF, "type": "function", "function": {"name": HALF, "arguments": HALF}}
RESULT = {"role": "tool", "tool_call_id": HALF, "content": HALF}
VALUES = [
    {"model": HALF, "messages": [{"role": "user", "content": HALF}]},
    {"model": "m", "stream": True, "messages": [{"role": HALF, "content": [{"type": "text", "text": HALF}]}]},
    {HALF: 1, "model": "a\0b", "messages": [{"role": "user", "content": f"\0{HALF}"}]},
    {"model": "m", "messages": [{"role": "assistant", "tool_calls": [TOOL]}, RESULT], "tools": [TOOL]},
    {"model": "m", "input": [{"type": "function_call_output", "call_id": HALF, "output": HALF}]},
    {"contents": [{"parts": [{"functionResponse": {"name": HALF, "response": {HALF: HALF}}}]}]},
    {"jsonrpc": "2.0", "id": HALF, "method": "tools/call", "params": {"name": HALF, "arguments": {HALF: HALF}}},
    {"model": None, "messages": None, "n": 99999999999999999999999999, "tools": [[]]},
]
BODIES = [json.dumps(value).replace(r"\\ud800", r"\ud800").encode() for value in VALUES]
BODIES += [b'{"model": "m", "messages": [{"role": "user", "content": "\xff"}]}', b"[" * 100_000, b"\xff\xfe\x00"]


@pytest.mark.parametrize(
    "path",
    [
        CHAT,
        b"openai/v1/responses",
        b"openai/v1/embeddings",
        b"anthropic/v1/messages",
        b"ollama/api/chat",
        b"mcp/shop",
        b"google/v1beta/models/a%ED%A0%80:generateContent",
        b"openai/v1/%ff?%ff=%00",
        b"mcp/%ff%00",
    ],
)
def test_no_body_breaks_a_plane(trial: Planes, path: bytes) -> None:
    for body in BODIES:
        assert status(trial.own(path, b"content-length: %d\r\n" % len(body), body)) >= 200, body


def test_a_request_with_half_a_character_is_a_model_call_like_any_other(tmp_path: Path) -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "left\\ud800right"}]}'
    with planes(tmp_path, [Injection("llm", "*", "rate_limit")]) as trial:
        assert status(trial.own(CHAT, b"content-length: %d\r\n" % len(body), body)) == 429
        assert [met.mode for met in trial.context.ledger] == ["rate_limit"]
        assert trial.context.trace[0].input == "left\ufffdright"


@pytest.mark.parametrize("body", [b"\xff", b'{"model": "\xff"}', b"[]", b"{", b"", b"null"])
def test_a_model_call_that_is_not_an_object_gets_400_and_is_noted(trial: Planes, body: bytes, golden: Golden) -> None:
    assert status(trial.own(CHAT, b"content-length: %d\r\n" % len(body), body)) == 400
    golden(" ".join(trial.context.notes))
    assert trial.context.troubles == []


def test_the_trial_continues_after_hostile_requests(tmp_path: Path) -> None:
    with planes(tmp_path) as trial:
        for target in UNREADABLE:
            trial.proxied(target)
        assert trial.answers
        assert trial.context.troubles == []
