from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from agent_http_servers import ask_web, reply_turn
from golden_words import Golden

STREAM = "text/event-stream"


def test_answer_is_found_and_timed() -> None:
    turn = reply_turn('{"output": "hello"}')
    assert (turn.text, turn.ending, turn.detail, turn.status) == ("hello", "answered", "", 200)
    assert 0 < turn.latency_ms < 5000


HTML = {"content_type": "text/html"}
CHOICES = json.dumps({"output": "no", "choices": [{"message": {"content": "yes"}}]})
EVENTS = ": hello\n\ndata: Hel\n\nevent: x\ndata: lo\n\ndata:  you\n\ndata: two\ndata: lines\n\ndata: [DONE]\n\n"
PATHS = 'data: {"t": {"x": "a"}}\n\ndata: {"end": true}\n\ndata: {"t": {"x": "b"}}\n\n'


@pytest.mark.parametrize(
    ("body", "settings", "text", "ending"),
    [
        ('{"output": "hello"}', HTML, "hello", "answered"),
        ('{"output": "x", "error": null, "success": true}', {}, "x", "answered"),
        # A reply that is not JSON is the answer as text; JSON that is not an object is all answer.
        ("<p>hello</p>", HTML, "<p>hello</p>", "answered"),
        ('"quoted"', {"content_type": "text/plain"}, '"quoted"', "answered"),
        ("{broken", {}, "{broken", "answered"),
        ('"bare"', {}, "bare", "answered"),
        ("[1, 2]", {}, "[1, 2]", "answered"),
        (CHOICES, {"response_path": "$.choices[0].message.content"}, "yes", "answered"),
        (CHOICES, {"response_path": "choices.0.message"}, '{"content": "yes"}', "answered"),
        ("gateway page", {**HTML, "response_path": "output"}, "gateway page", "unreadable"),
        ('{"output": null}', {}, None, "no_answer"),
        ("", {}, None, "no_answer"),
        ("", {"status": 204}, None, "no_answer"),
        (
            '{"output": "é"}'.encode("latin-1"),
            {"content_type": "application/json; charset=iso-8859-1"},
            "é",
            "answered",
        ),
        (b'\xef\xbb\xbf{"output": "x"}', {}, "x", "answered"),
        (EVENTS, {"content_type": f"{STREAM}; charset=utf-8"}, "Hello youtwo\nlines", "answered"),
        (PATHS, {"content_type": STREAM, "response_path": "$.t.x"}, "ab", "answered"),
        (PATHS, {"content_type": STREAM, "response_path": "$.nope"}, None, "unreadable"),
        (": ping\n\n", {"content_type": STREAM}, None, "no_answer"),
    ],
)
def test_the_answer_in_a_reply(body: str | bytes, settings: dict[str, Any], text: str | None, ending: str) -> None:
    turn = reply_turn(body, **settings)
    assert (turn.text, turn.ending, turn.status) == (text, ending, settings.get("status", 200))


@pytest.mark.parametrize(
    "value",
    [
        {"text": "x", "total": 3},
        {"content": {"text": "x"}},
        {"output": None, "message": "é"},
        [{"text": "x"}],
        {},
        [],
        0,
        False,
        12.5,
    ],
)
def test_what_is_at_a_response_path_is_the_answer_and_nothing_inside_it(value: object) -> None:
    body = json.dumps({"answer": value})
    for path in ("$.answer", "answer"):
        turn = reply_turn(body, response_path=path)
        assert (turn.ending, json.loads(turn.text or "")) == ("answered", value)
    assert reply_turn(f"data: {body}\n\n", content_type=STREAM, response_path="answer").text == turn.text
    whole = reply_turn(json.dumps({"text": "x", "more": value}), response_path="$")
    assert json.loads(whole.text or "") == {"text": "x", "more": value}


def test_nothing_at_response_path_is_unreadable_and_shows_the_body() -> None:
    turn = reply_turn('{"output": "source: x"}', response_path="$.answer")
    assert (turn.text, turn.ending) == (None, "unreadable")
    assert "$.answer" in turn.detail
    assert '{"output": "source: x"}' in turn.detail


def test_no_usual_key_is_unreadable_and_says_to_set_a_path() -> None:
    turn = reply_turn('{"id": 7}')
    assert (turn.text, turn.ending) == (None, "unreadable")
    assert "response_path" in turn.detail


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_status_of_400_and_more_is_an_http_error_with_text_kept(status: int) -> None:
    turn = reply_turn('{"output": "sorry"}', status=status)
    assert (turn.text, turn.ending, turn.status) == ("sorry", "http_error", status)
    assert str(status) in turn.detail
    assert reply_turn("<h1>oops</h1>", status=status, content_type="text/html").text == "<h1>oops</h1>"
    assert reply_turn('{"detail": "oops"}', status=status).text == '{"detail": "oops"}'
    assert reply_turn("", status=status).text is None


def test_redirects_are_not_followed(golden: Golden) -> None:
    paths: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    turn = ask_web(handler).turns[0]
    assert (turn.ending, turn.status, paths) == ("http_error", 302, ["/ask"])
    golden(turn.detail)


@pytest.mark.parametrize(
    ("body", "text", "detail"),
    [
        ({"output": "half", "error": "tool down"}, "half", "tool down"),
        ({"output": "half", "error": {"message": "tool down", "code": 3}}, "half", "tool down"),
        ({"output": "half", "success": False}, "half", "success: false"),
        ({"error": "tool down"}, '{"error": "tool down"}', "tool down"),
    ],
)
def test_error_or_success_false_in_the_body_is_a_bad_ending_with_text_kept(
    body: dict[str, object], text: str, detail: str
) -> None:
    turn = reply_turn(json.dumps(body))
    assert (turn.text, turn.ending) == (text, "http_error")
    assert detail in turn.detail


@pytest.mark.parametrize(
    ("body", "charset", "text", "why"),
    [
        (b'{"output": "\xff\xfe"}', "utf-8", '{"output": "\ufffd\ufffd"}', "not utf-8"),
        (b'{"output": "x"}', "klingon", '{"output": "x"}', "unknown charset 'klingon'"),
        (b'{"output": "x"}', "undefined", '{"output": "x"}', "not 'undefined'"),
        (b'{"output": "x"}', "zip", '{"output": "x"}', "unknown charset 'zip'"),
        (b"x\xe9", "idna", "x\ufffd", "idna"),
    ],
)
def test_wrong_charset_is_unreadable_and_no_fault_of_the_spec(body: bytes, charset: str, text: str, why: str) -> None:
    turn = reply_turn(body, content_type=f"application/json; charset={charset}")
    assert (turn.ending, turn.text) == ("unreadable", text)
    assert turn.cause == "not-text"
    assert why in turn.detail


@pytest.mark.slow
def test_deep_nesting_is_read_and_only_what_is_not_json_is_taken_as_text() -> None:
    deep = '{"more": ' + "[" * 5_000 + "]" * 5_000 + ', "answer": "x"}'
    assert reply_turn(deep).text == "x"
    assert reply_turn(deep, response_path="answer").text == "x"
    assert reply_turn("[" * 200_000).text == "[" * 200_000
    assert reply_turn("[" * 200_000, response_path="answer").ending == "unreadable"
    assert reply_turn("[" * 200_000, status=500).ending == "http_error"


@pytest.mark.parametrize("path", ["", "answer", "$.answer[*]"])
def test_an_answer_of_any_depth_is_read(path: str) -> None:
    value = '[{"é": [1, ""], "b": {}}, ' + "[" * 20_000 + "]" * 20_000 + "]"  # Python 3.13 writes 5,000 levels
    turn = reply_turn(f'{{"answer": {value}}}', response_path=path)
    assert (turn.ending, turn.text) == ("answered", value)
    nested = '{"text": ' * 20_000 + '"inner"' + "}" * 20_000
    assert reply_turn(nested).text == "inner"


def test_event_stream_of_model_chunks_is_joined_by_content() -> None:
    chunks = [
        {"choices": [{"delta": {"role": "assistant"}}]},
        *({"choices": [{"delta": {"content": c}}]} for c in "héy"),
    ]
    body = "".join(f"data: {json.dumps(c)}\r\n\r\n" for c in [*chunks, {"choices": []}]) + "data: [DONE]\r\n\r\n"
    assert reply_turn(body, content_type=STREAM).text == "héy"


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([{"type": "content_block_delta", "delta": {"type": "text_delta", "text": t}} for t in ("a", "b")], "ab"),
        ([{"type": "response.output_text.delta", "delta": "a"}, {"type": "done", "response": {"id": 1}}], "a"),
        ([{"output": "a"}, {"output": "b"}], "ab"),
        ([{"tok": 1}, {"tok": 2}], '{"tok": 1}{"tok": 2}'),
    ],
)
def test_event_streams_of_json(events: list[dict[str, object]], text: str) -> None:
    body = "".join(f"data: {json.dumps(e)}\n\n" for e in events)
    assert reply_turn(body, content_type=STREAM).text == text


def test_error_event_in_a_stream_is_a_bad_ending_with_text_kept() -> None:
    body = 'data: {"output": "half"}\n\ndata: {"error": {"message": "overloaded"}}\n\n'
    turn = reply_turn(body, content_type=STREAM)
    assert (turn.text, turn.ending) == ("half", "http_error")
    assert "overloaded" in turn.detail


def test_answer_over_a_megabyte_is_cut_and_noted(golden: Golden) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"output": "é" * 600_000})

    answer = ask_web(handler)
    assert len((answer.turns[0].text or "").encode()) == 1_000_000
    golden(answer.notes)


def test_body_over_ten_megabytes_is_cut_and_a_bad_ending_that_says_so(golden: Golden) -> None:
    sent = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        try:
            while sent < 200_000_000:
                await response.write(b"x" * 1_000_000)
                sent += 1_000_000
        except ConnectionError:
            pass
        return response

    answer = ask_web(handler)
    (turn,) = answer.turns
    assert (turn.ending, turn.cut) == ("unreadable", True)
    golden(turn.detail)
    assert turn.text == "x" * 1_000_000
    golden(answer.notes)
    assert sent < 64_000_000
