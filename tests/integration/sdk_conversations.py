"""Conversations that every client library has through the gateway, and what is held against them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from gateway_kit import ARGUMENTS, FOUND, TEXT, USAGE, Got, Place, Provider, ServedTrial, attempt, site_planes

from holdfast.model.scenario import Injection
from holdfast.model.trace import Cost

HOWS = ("plain", "streamed")


def say(client: Any, history: list[Any], prompt: str, how: str = "plain", *, tools: bool = False) -> Got:
    """One more question of the user's."""
    client.says(history, prompt)
    return attempt(lambda got: getattr(client, how)(got, history, tools=tools))


def use(client: Any, history: list[Any], asked: Got, results: Sequence[Any], how: str = "plain") -> Got:
    """The tools that the model asked for have run; what it says next."""
    texts = [result if isinstance(result, str) else json.dumps(result, ensure_ascii=False) for result in results]
    client.did(history, asked, texts)
    return attempt(lambda got: getattr(client, how)(got, history, tools=True))


def check_healthy(place: Place, voice: Any, how: str, stop: str) -> None:
    """Text, end, usage and cost are right, and nothing is in the ledger."""
    client = place.client(voice)
    with place.sail() as served:
        got = say(client, [], "How did ACME do?", how)
    assert (got.error, got.text, got.calls, got.finish, got.usage, got.model) == (
        None,
        TEXT,
        [],
        stop,
        USAGE,
        voice.model,
    )
    (call,) = served.calls
    assert (call.plane, call.tool, call.n, call.retry, call.status, call.error_type) == (
        "llm",
        voice.model,
        1,
        0,
        200,
        "",
    )
    assert (call.input, call.output, call.phase, call.fault) == ("How did ACME do?", TEXT, "done", "")
    assert call.cost == Cost(voice.model, *USAGE, voice.usd, billed=False)
    _calm(served)


def check_conversation(place: Place, voice: Any, how: str) -> None:
    """Two steps with a tool between: the call is read right, the result is read by the model, the trace has all."""
    client, history = place.client(voice), []
    with place.sail() as served:
        asked = say(client, history, "Will it rain?", how, tools=True)
        told = use(client, history, asked, [FOUND], how)
    assert (asked.error, told.error) == (None, None)
    assert [(call.name, call.read) for call in asked.calls] == [("forecast", ARGUMENTS)]
    assert asked.usage == USAGE
    assert json.loads(told.text) == FOUND
    assert told.calls == []
    assert [(e.n, e.retry) for e in served.calls] == [(1, 0), (2, 0)]
    (tool,) = served.tools
    assert (tool.plane, tool.tool, tool.n, tool.phase, tool.error_type) == ("tool_result", "forecast", 1, "done", "")
    assert (json.loads(tool.input), json.loads(tool.output)) == (ARGUMENTS, FOUND)
    _calm(served)


def check_repeats(place: Place, voice: Any) -> None:
    """repeat_tool_call: no effect at first; then the same call under a new id, whatever the tool gave."""
    client, history = place.client(voice), []
    with place.sail(Injection("llm", "*", "repeat_tool_call")) as served:
        first = say(client, history, "Will it rain?", tools=True)
        second = use(client, history, first, [FOUND])
        third = use(client, history, second, [FOUND], "streamed")
    for got in (first, second, third):
        assert (got.error, [(call.name, call.read) for call in got.calls]) == (None, [("forecast", ARGUMENTS)])
    ids = [got.calls[0].id for got in (first, second, third)]
    assert len(set(ids)) == (1 if ids[0] == "" else 3)  # some libraries show none
    model = voice.model
    assert served.met == [
        ("llm", model, 1, 0, "repeat_tool_call", "no_effect"),
        ("llm", model, 2, 0, "repeat_tool_call", "met"),
        ("llm", model, 3, 0, "repeat_tool_call", "met"),
    ]
    assert [e.phase for e in served.tools] == ["done", "done", "declared"]


def check_passing(
    server: Provider, environ: Mapping[str, str], voice: Any, path: str, plain: bytes, stream: Sequence[bytes]
) -> list[Any]:
    """A provider's reply, plain and streamed, is read right by the library and passes as bytes; what the server saw."""
    kind = "application/x-ndjson" if stream[0].startswith(b"{") else "text/event-stream; charset=utf-8"
    with site_planes(environ=environ) as place:
        for how, said in (("plain", (200, "application/json", [plain])), ("streamed", (200, kind, list(stream)))):
            server.says = [said]
            client = place.client(voice)
            with place.sail() as served:
                got = say(client, [], "How did ACME do?", how)
                again = _raw(served, voice, server)
            assert (got.error, got.text, got.usage) == (None, "Olé", USAGE)
            assert (again.content, again.headers["content-type"]) == (b"".join(said[2]), said[1])
            assert [(e.status, e.output, e.cost and e.cost.input_tokens) for e in served.calls] == [
                (200, "Olé", USAGE[0])
            ] * 2
            _calm(served)
    assert all(path in where for where, _, _ in server.seen)
    return server.seen


def _raw(served: ServedTrial, voice: Any, server: Provider) -> httpx.Response:
    """The request that the library has sent, once more, by a client that reads nothing into the answer."""
    path, _, body = server.seen[-1]
    return httpx.post(f"{served.address.url}/{voice.provider}{path}", json=body)


def _calm(served: ServedTrial) -> None:
    assert (served.met, served.context.troubles, served.context.notes, served.context.concurrent) == ([], [], [], False)
