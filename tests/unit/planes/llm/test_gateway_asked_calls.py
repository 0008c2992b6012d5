"""Calls that a model requests in any form and place of its reply, and the results that answer them."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from gateway_agent import run_served

from holdfast.model.completion import ToolCall
from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.llm import provider_reply
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.gemini import GEMINI
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.openai_chat_request import find_calls
from holdfast.planes.llm.codecs.openai_responses import OPENAI_RESPONSES
from planes_kit import FakeContext

ARGUMENTS = '{"q": "kettle"}'
FUNCTION = {"name": "search", "arguments": ARGUMENTS}
CALL = {"id": "call_1", "type": "function", "function": FUNCTION}
CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "search", "input": "kettle"}
DOWN = Injection("tool", "search", "error")
USER = {"role": "user", "content": "How many kettles?"}
EVENTS = "text/event-stream"


def chat(*messages: dict[str, Any]) -> dict[str, Any]:
    """A plain reply of these choices."""
    choices = [{"index": n, "message": m, "finish_reason": "stop"} for n, m in enumerate(messages)]
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": choices}


def chunks(*deltas: tuple[int, dict[str, Any]], finish: bool = True) -> bytes:
    """A streamed reply: the pieces of its choices."""
    choices = [{"index": n, "delta": delta} for n, delta in deltas]
    choices += [{"index": 0, "delta": {}, "finish_reason": "stop"}] if finish else []
    return b"".join([b"data: %s\n\n" % json.dumps({"model": "m", "choices": [one]}).encode() for one in choices])


def streamed(codec: Codec, data: bytes) -> tuple[ToolCall, ...]:
    return codec.read_stream(data).build_completion().other_calls


def test_calls_in_further_choices_are_read() -> None:
    call = ToolCall("call_1", "search", ARGUMENTS)
    text = {"role": "assistant", "content": "hm"}
    assert OPENAI_CHAT.read_reply(chat(text, {"role": "assistant", "tool_calls": [CALL]})).other_calls == (call,)
    first = {**CALL, "index": 0, "function": {"name": "search", "arguments": ARGUMENTS[:5]}}
    rest = {"index": 0, "function": {"arguments": ARGUMENTS[5:]}}
    pieces = [(0, {"content": "hm"}), (2, {"tool_calls": [first]}), (2, {"tool_calls": [rest]})]
    assert streamed(OPENAI_CHAT, chunks(*pieces)) == (call,)


def test_calls_in_the_old_function_call_field_are_read() -> None:
    call = ToolCall("", "search", ARGUMENTS)
    assert OPENAI_CHAT.read_reply(chat({"role": "assistant", "function_call": FUNCTION})).other_calls == (call,)
    pieces = [(0, {"function_call": {"name": "search", "arguments": ""}})]
    pieces += [(0, {"function_call": {"arguments": part}}) for part in (ARGUMENTS[:4], ARGUMENTS[4:])]
    assert streamed(OPENAI_CHAT, chunks(*pieces)) == (call,)


def test_calls_in_further_candidates_are_read() -> None:
    def candidate(n: int, part: dict[str, Any]) -> dict[str, Any]:
        return {"index": n, "content": {"role": "model", "parts": [part]}}

    asks = {"functionCall": {"name": "search", "args": {"q": "kettle"}}}
    both = [candidate(0, {"text": "hm"}), candidate(1, asks)]
    (plain,) = GEMINI.read_reply({"candidates": both}).other_calls
    events = [b"data: %s\r\n\r\n" % json.dumps({"candidates": [one]}).encode() for one in (*both, candidate(1, asks))]
    assert streamed(GEMINI, b"".join(events)) == (plain, plain)
    assert (plain.name, json.loads(plain.arguments)) == ("search", {"q": "kettle"})


def test_calls_of_custom_tools_are_read() -> None:
    call = ToolCall("call_1", "search", "kettle")
    reply = {"id": "r", "status": "completed", "output": [CUSTOM]}
    assert OPENAI_RESPONSES.read_reply(reply).other_calls == (call,)
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**CUSTOM, "input": ""}},
        {"type": "response.output_item.done", "output_index": 0, "item": CUSTOM},
        {"type": "response.completed", "response": reply},
    ]
    for some in (events, events[2:]):
        assert streamed(OPENAI_RESPONSES, b"".join([b"data: %s\n\n" % json.dumps(e).encode() for e in some])) == (call,)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f'Action:\n{{"name": "search", "arguments": {ARGUMENTS}}}', ("search", '{"q":"kettle"}')),
        ('<tool_call>{"name": "search", "arguments": "{}"}</tool_call>', ("search", "{}")),
        ('{"name": "stop"}', ("stop", "{}")),
        ('{"text": "a\nb"}', None),
        ("} no call {", None),
        ("{1} and {2}", None),
        ("nothing", None),
        ('{"name": "search", "x": "' + "y" * 200_000 + '"}', None),
        ("{" * 5_000 + "}" * 5_000, None),
    ],
)
def test_a_call_in_the_text_of_a_reply_is_read_as_smolagents_reads_it(text: str, found: tuple[str, str] | None) -> None:
    assert [(call.name, call.arguments) for call in find_calls(text)] == ([found] if found else [])


# -- through the gateway -----------------------------------------------------------------------------
def sent(url: str, path: str, body: dict[str, Any]) -> HTTPConnection:
    place, _, base = url.removeprefix("http://").partition("/")
    connection = HTTPConnection(place, timeout=20)
    connection.request("POST", f"/{base}{path}", json.dumps({"model": "m", **body}))
    return connection


def post(url: str, path: str, body: dict[str, Any]) -> None:
    with closing(sent(url, path, body)) as connection:
        connection.getresponse().read()


def met(
    folder: Path, reply: bytes, kind: str, path: str, requests: list[dict[str, Any]], *weather: Injection
) -> list[tuple[str, str, str]]:
    """What the trace has of tools, after requests that are all answered with this reply."""

    async def respond(_: web.Request) -> web.StreamResponse:
        return web.Response(body=reply, headers={"content-type": kind})

    async def talk(url: str) -> None:
        for request in requests:
            await asyncio.to_thread(post, url, path, request)

    context = run_served(folder, respond, talk, DOWN, *weather)
    assert context.troubles == []
    return [(e.tool, e.phase, e.fault) for e in context.trace if e.event_type == "tool_call"]


def turns(*later: dict[str, Any], stream: bool = False) -> list[dict[str, Any]]:
    return [{"stream": stream, "messages": [USER, *more]} for more in ([], list(later))]


RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "3"}
ASKED = {"role": "assistant", "tool_calls": [CALL]}
OLD = {"role": "assistant", "function_call": FUNCTION}
WRITTEN = f"Thought: search.\nAction:\n{json.dumps(FUNCTION)}"
MADE_UP = {"id": "made-up", "type": "function", "function": {"name": "search", "arguments": {"q": "kettle"}}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("message", "choice", "later"),
    [
        (ASKED, 0, [ASKED, RESULT]),
        (ASKED, 1, [ASKED, RESULT]),
        (OLD, 0, [OLD, {"role": "function", "name": "search", "content": "3"}]),
        (
            {"content": WRITTEN},
            0,
            [
                {"role": "assistant", "content": f"{WRITTEN}\nCalling tools:\n{[MADE_UP]}"},
                {"role": "user", "content": "Observation:\n3"},
            ],
        ),
    ],
    ids=["first choice", "second choice", "function_call", "in a text"],
)
def test_faults_act_on_results_of_calls_in_every_form(
    tmp_path: Path, message: dict[str, Any], choice: int, later: list[dict[str, Any]], stream: bool
) -> None:
    if stream:
        reply, kind = chunks((choice, message)), EVENTS
    else:
        others = [{"role": "assistant", "content": "hm"}] * choice
        reply, kind = json.dumps(chat(*others, message)).encode(), "application/json"
    found = met(tmp_path, reply, kind, "/chat/completions", turns(*later, stream=stream))
    assert found[0] == ("search", "done", "error")
    assert all(phase == "declared" for _, phase, _ in found[1:])  # the second reply asks once more


def test_faults_act_on_results_of_custom_tools_when_the_server_keeps_the_conversation(
    tmp_path: Path,
) -> None:
    reply = json.dumps({"id": "resp_1", "object": "response", "status": "completed", "output": [CUSTOM]}).encode()
    output = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "3"}
    requests = [{"input": "How many kettles?"}, {"previous_response_id": "resp_1", "input": [output]}]
    found = met(tmp_path, reply, "application/json", "/responses", requests)
    assert found[0] == ("search", "done", "error")


@pytest.mark.parametrize("stream", [False, True])
def test_the_reply_after_faults_decides_which_calls_were_requested(tmp_path: Path, stream: bool) -> None:
    plain = json.dumps(chat(ASKED)).encode()
    reply, kind = (chunks((0, ASKED)), EVENTS) if stream else (plain, "application/json")
    path, first = "/chat/completions", Schedule(on_call=1)
    filtered = Injection("llm", "*", "content_filter", schedule=first)
    found = met(tmp_path, reply, kind, path, turns(ASKED, RESULT, stream=stream), filtered)
    assert found == [("search", "declared", "")] * 2  # the result, and what the second reply asks for
    other = {**CALL, "function": {"name": "find", "arguments": ARGUMENTS}}
    later = [{"role": "assistant", "tool_calls": [other]}, RESULT]
    renamed = Injection("llm", "*", "unknown_tool", {"tool": "find"}, first)
    found = met(tmp_path, reply, kind, path, turns(*later, stream=stream), renamed)
    assert found[0] == ("find", "done", "")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("words", [[], [{"role": "user", "content": "(3 steps left)"}]])
def test_a_result_after_an_unreadable_reply_may_be_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool, words: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(provider_reply, "TRACED_LIMIT", 100)
    whole = json.dumps(chat({**ASKED, "content": "x" * 500})).encode()
    reply, kind = (chunks((0, {"content": "x" * 500})), EVENTS) if stream else (whole, "application/json")
    later = turns(ASKED, RESULT, *words, stream=stream)
    assert met(tmp_path, reply, kind, "/chat/completions", later) == [("search", "declared", "")]


def test_an_agent_may_continue_before_the_end_of_the_stream(tmp_path: Path) -> None:
    done = asyncio.Event()

    async def lingering(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": EVENTS})
        await response.prepare(request)
        first = not any(m["role"] == "tool" for m in (await request.json())["messages"])
        await response.write(chunks((0, ASKED if first else {"content": "three"})))
        if first:
            await done.wait()
        return response

    async def talk(url: str) -> None:
        before, after = turns(ASKED, RESULT, stream=True)
        first = await asyncio.to_thread(sent, url, "/chat/completions", before)
        reply = await asyncio.to_thread(first.getresponse)
        received = b""
        while b'"finish_reason"' not in received:
            received += await asyncio.to_thread(reply.read1, 10_000)
        await asyncio.to_thread(post, url, "/chat/completions", after)
        done.set()
        await asyncio.to_thread(reply.read)
        first.close()

    context = run_served(tmp_path, lingering, talk, DOWN)
    assert [(e.n, e.phase, e.fault) for e in context.trace if e.event_type == "tool_call"] == [(1, "done", "error")]


# -- replies that the agent fetches ------------------------------------------------------------------
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "search", "arguments": ARGUMENTS}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
QUEUED = {"id": "resp_1", "object": "response", "status": "queued", "output": []}
BEGUN = {**QUEUED, "status": "in_progress", "output": [{**ITEM, "arguments": ARGUMENTS[:4], "status": "in_progress"}]}
ENDED = {**QUEUED, "status": "completed", "output": [ITEM], "usage": {"input_tokens": 3, "output_tokens": 2}}
DONE = {"id": "resp_2", "object": "response", "status": "completed", "output": []}


def get(url: str, path: str) -> None:
    place, _, base = url.removeprefix("http://").partition("/")
    with closing(HTTPConnection(place, timeout=20)) as connection:
        connection.request("GET", f"/{base}{path}")
        connection.getresponse().read()


def fetched(folder: Path, path: str, second: dict[str, Any], *replies: dict[str, Any]) -> FakeContext:
    """A trial in which a model works in the background: the agent asks, fetches these, and sends the tool's result."""
    left = iter(replies)

    async def respond(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return web.json_response(QUEUED if "background" in await request.json() else DONE)
        reply = next(left)
        if "stream" not in request.query:
            return web.json_response(reply)
        event = {"type": "response.completed", "response": reply}
        return web.Response(body=b"data: %s\n\n" % json.dumps(event).encode(), headers={"content-type": EVENTS})

    async def talk(url: str) -> None:
        await asyncio.to_thread(post, url, "/responses", {"background": True, "input": "How many kettles?"})
        for _ in replies:
            await asyncio.to_thread(get, url, path)
        await asyncio.to_thread(post, url, "/responses", second)

    context = run_served(folder, respond, talk, DOWN)
    assert context.troubles == []
    return context


@pytest.mark.parametrize("path", ["/responses/resp_1", "/responses/resp_1?stream=true&starting_after=1"])
@pytest.mark.parametrize(
    "second",
    [
        {"previous_response_id": "resp_1", "input": [OUTPUT]},
        {"input": [{"role": "user", "content": "How many kettles?"}, ITEM, OUTPUT]},
    ],
    ids=["kept by the server", "sent again"],
)
def test_a_call_in_a_fetched_reply_counts_once(tmp_path: Path, path: str, second: dict[str, Any]) -> None:
    replies = [ENDED] if "stream" in path else [QUEUED, BEGUN, ENDED, ENDED]
    context = fetched(tmp_path, path, second, *replies)
    assert [(e.tool, e.phase, e.fault) for e in context.trace if e.event_type == "tool_call"] == [
        ("search", "done", "error")
    ]
    fetches = [e for e in context.trace if e.event_type == "http_call"]
    assert [e.cost for e in fetches] == [None] * len(replies)  # else each look at it would be paid for


def test_a_call_in_a_fetched_reply_without_a_result_is_declared(tmp_path: Path) -> None:
    context = fetched(tmp_path, "/responses/resp_1", {"input": "Never mind."}, ENDED)
    assert [(e.tool, e.phase) for e in context.trace if e.event_type == "tool_call"] == [("search", "declared")]


def test_a_result_after_a_fetched_reply_in_an_unknown_format_may_be_a_call(tmp_path: Path) -> None:
    second = {"input": [ITEM, OUTPUT, {"role": "user", "content": "(3 steps left)"}]}
    context = fetched(tmp_path, "/v9/unheard-of", second, ENDED)
    assert [(e.tool, e.phase) for e in context.trace if e.event_type == "tool_call"] == [("search", "declared")]
