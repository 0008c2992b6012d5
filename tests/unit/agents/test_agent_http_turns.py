from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent_http_servers import Plain, ask_web, opened, read_request, web_server
from holdfast.agents.conversation import ANSWER_KEYS, find_answer, to_text
from holdfast.errors import AgentUnavailable
from holdfast.model.observation import Answer
from holdfast.model.task import Task
from holdfast.reading.json_values import MISSING, compile_answer_path
from refused import refused
from tls_server import REPLY, server


async def counting(request: web.Request) -> web.Response:
    """Answers how often this cookie's holder has come."""
    visits = int(request.cookies.get("visits", "0")) + 1
    response = web.json_response({"output": str(visits)})
    response.set_cookie("visits", str(visits))
    return response


def test_turns_of_a_trial_share_cookies() -> None:
    answer = ask_web(counting, "a", "b", "c")
    assert [(t.asked, t.text) for t in answer.turns] == [("a", "1"), ("b", "2"), ("c", "3")]


def test_trials_do_not_share_cookies() -> None:
    async def go() -> list[Answer]:
        async with web_server(counting) as url, opened(url) as agent:
            tasks = [Task(("a", "b")), Task(("a",)), Task(("a",)), Task(("a", "b"))]
            return [await agent.run(task, Plain()) for task in tasks]

    assert [[t.text for t in answer.turns] for answer in asyncio.run(go())] == [["1", "2"], ["1"], ["1"], ["1", "2"]]


def test_after_a_bad_turn_nothing_more_is_asked() -> None:
    async def handler(request: web.Request) -> web.Response:
        asked = (await request.json())["input"]
        return web.json_response({"output": asked}, status=500 if asked == "b" else 200)

    answer = ask_web(handler, "a", "b", "c")
    assert [(t.asked, t.ending) for t in answer.turns] == [("a", "answered"), ("b", "http_error")]


def test_trials_run_at_once_up_to_the_limit() -> None:
    now = most = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        return web.json_response({"output": (await request.json())["input"]})

    async def go() -> list[Answer]:
        async with web_server(handler) as url, opened(url) as agent:
            return await asyncio.gather(*(agent.run(Task((f"q{n}",)), Plain()) for n in range(12)))

    answers = asyncio.run(go())
    assert [a.turns[0].text for a in answers] == [f"q{n}" for n in range(12)]
    assert most == 4


DOC = {"a": {"b": [{"c": "x"}, {"c": "y"}], "0": "zero", "n": None}, "k-e y": 1, "choices": [{"message": "m"}]}


def test_response_path_as_jsonpath_or_dotted() -> None:
    for path, expected in [
        ("a.b.0.c", "x"),
        ("a.b[1].c", "y"),
        ("a.b[-1].c", "y"),
        ("a.0", "zero"),
        ("k-e y", 1),
        ("a['0']", "zero"),
        ("$.a.b[0].c", "x"),
        ("$.choices[0].message", "m"),
        ("$['a']['b'][1]['c']", "y"),
        ("$..b[?@.c == 'y'].c", "y"),
        ("$.a.b[*].c", "x\ny"),
        ("$", DOC),
        ("a.n", None),
        ("$.a.n", None),
        ("a.missing", MISSING),
        ("a.b.9.c", MISSING),
        ("a.b.word", MISSING),
        ("k-e y.deeper", MISSING),
        ("$.nope[0]", MISSING),
        ("$..nope", MISSING),
    ]:
        assert compile_answer_path(path)(DOC) == expected, (path, expected)


@pytest.mark.parametrize("path", ["$.a[", "$..", "a[", "a..b", "a]"])
def test_a_path_that_cannot_be_read_is_a_configuration_error(path: str) -> None:
    with pytest.raises(AgentUnavailable, match="response_path") as caught:
        compile_answer_path(path)
    assert caught.value.config


def test_documented_keys_are_found_without_a_path() -> None:
    for key in ANSWER_KEYS:
        assert find_answer({"id": 7, key: "x"}) == "x", key


def test_documented_keys_are_tried_in_order_and_nulls_are_passed_over() -> None:
    assert find_answer({"text": "second", "output": None, "response": "first"}) == "first"
    assert find_answer({"output": None}) is None
    assert find_answer({"id": 7}) is MISSING
    assert find_answer(["a"]) == ["a"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x", "x"),
        ({"role": "assistant", "content": "hi"}, "hi"),
        ({"message": {"content": "deep"}}, "deep"),
        ({"score": 1, "é": None}, '{"score": 1, "é": null}'),
        ([1, "é"], '[1, "é"]'),
        (5, "5"),
        (True, "true"),
        (0, "0"),
    ],
)
def test_found_values_become_text(value: Any, expected: str) -> None:
    assert to_text(value) == expected


# An agent behind https is checked against the system's trust, or what SSL_CERT_FILE names.


__all__ = ["server"]  # a fixture


async def ask_twice(context: ssl.SSLContext) -> tuple[list[Answer], int]:
    """Two answers of a server behind TLS, and over how many connections they came."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await read_request(reader):
                writer.write(REPLY)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}/ask"
    try:
        async with opened(url) as agent:
            return [await agent.run(Task(("hi",)), Plain()) for _ in range(2)], connections
    finally:
        listening.close()


def test_a_server_that_the_user_trusts_is_asked_over_a_kept_connection(
    server: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "trust.pem"))
    answers, connections = asyncio.run(ask_twice(server))
    assert [answer.turns[0].text for answer in answers] == ["ok", "ok"]
    assert connections == 1


def test_a_certificate_that_nobody_trusts_is_unavailable_and_says_what_to_set(server: ssl.SSLContext) -> None:
    with refused("agent-unreachable") as caught:
        asyncio.run(ask_twice(server))
    assert "SSL_CERT_FILE" in caught.value.hint


CANARY = "holdfast-canary-0123abcd"


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ({"output": "fine", "debug": [{"note": CANARY.upper()}]}, (CANARY,)),
        ({"output": "fine", "debug": "none"}, ()),
        ({"output": "fine", "input": f"say {CANARY}"}, ()),
        ({"output": "fine", "messages": [CANARY]}, ()),
    ],
)
def test_a_canary_in_another_field_of_the_reply_is_recorded(reply: Any, found: tuple[str, ...]) -> None:
    async def in_json(request: web.Request) -> web.Response:
        return web.json_response(reply)

    async def in_events(request: web.Request) -> web.Response:
        return web.Response(text=f"data: {json.dumps(reply)}\n\n", content_type="text/event-stream")

    (turn,) = ask_web(in_json, f"say {CANARY}").turns
    assert (turn.text, turn.canaries) == ("fine", found)
    if found:
        (turn,) = ask_web(in_events, "hello").turns
        assert (turn.text, turn.canaries) == ("fine", found)
