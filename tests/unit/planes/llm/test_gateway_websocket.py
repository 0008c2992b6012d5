"""A websocket by way of a model's base URL: it passes to a provider unread, and nobody else can answer one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from upstream_server import Server, serving

from gateway_trial import gateway_for
from golden_words import Golden
from holdfast.judge.rule import RuleJudge
from holdfast.model.model_spec import ModelSpec
from holdfast.model.observation import Observation, Turn
from holdfast.model.spec import Invariant
from planes_kit import FakeContext

PATH = "/realtime?model=gpt-realtime"


async def echoing(request: web.Request) -> web.StreamResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    await socket.send_str(f"{request.path_qs} {request.headers['authorization']} {request.headers['host']}")
    async for message in socket:
        await socket.send_str(f"you said {message.data}")
    return socket


async def refusing(request: web.Request) -> web.StreamResponse:
    return web.json_response({"error": {"message": "no such model"}}, status=404)


def talked(
    folder: Path,
    respond: Any = echoing,
    *,
    models: Mapping[str, ModelSpec] | None = None,
    named: bool = True,
    leaving: bool = False,
    path: str = PATH,
) -> tuple[FakeContext, list[str], int]:
    """One websocket: the trial, what came, and the status if it was refused."""
    context, received, status = FakeContext(), [], 101

    async def main() -> None:
        nonlocal status
        async with serving() as server, aiohttp.ClientSession() as client:
            assert isinstance(server, Server)
            server.respond = respond
            base = f"{server.url}/v1" if named else "http://127.0.0.1:9/v1"
            environ = {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "sk-users-own"}
            given = models if models is not None else {}
            async with gateway_for(context, folder, given, environ) as address:
                url = f"{address.environ['OPENAI_BASE_URL']}{path}"
                try:
                    async with client.ws_connect(url, headers={"authorization": "Bearer holdfast-no-key"}) as line:
                        received.append(await line.receive_str())
                        await line.send_str("hello")
                        received.append(await line.receive_str())
                        if leaving:
                            return
                except aiohttp.WSServerHandshakeError as refused:
                    status = refused.status
                await asyncio.sleep(0.05)

    asyncio.run(main())
    return context, received, status


def test_a_websocket_passes_to_the_provider_with_the_users_key_and_a_note_says_that_it_is_not_read(
    tmp_path: Path,
) -> None:
    context, (first, second), _ = talked(tmp_path)
    path, scheme, key, host = first.split()
    assert (path, scheme, key) == ("/v1/realtime?model=gpt-realtime", "Bearer", "sk-users-own")
    assert host.startswith("127.0.0.1:")
    assert second == "you said hello"
    assert context.troubles == []
    assert "passed unread" in context.notes[0]
    (event,) = context.trace
    assert (event.event_type, event.plane, event.status, event.error_type) == ("http_call", "llm", 101, "")
    assert event.tool == "GET /v1/realtime?model=gpt-realtime"


def test_a_websocket_that_is_open_when_the_trial_ends_is_in_the_trace(tmp_path: Path) -> None:
    context, _, _ = talked(tmp_path, leaving=True)
    assert [event.status for event in context.trace] == [101]


def test_a_refusal_of_the_provider_passes(tmp_path: Path) -> None:
    context, received, status = talked(tmp_path, refusing)
    assert (received, status, context.troubles) == ([], 404, [])
    assert [event.status for event in context.trace] == [404]


def test_a_provider_that_is_down_is_an_error(tmp_path: Path, golden: Golden) -> None:
    context, _, status = talked(tmp_path, named=False)
    assert status == 502
    golden(context.troubles[0])


def test_a_script_cannot_answer_a_websocket_and_says_so(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "model.yaml").write_text("replies: [{text: hi}]")
    context, _, status = talked(tmp_path, models={"*": ModelSpec("script", script="model.yaml")})
    assert status == 426
    golden(context.troubles[0])


SCRIPTED = {"*": ModelSpec("script", script="model.yaml")}


@pytest.mark.parametrize("models", [SCRIPTED, {}], ids=["script", "provider"])
def test_a_client_that_also_speaks_http_is_sent_there_and_nothing_has_broken(
    tmp_path: Path, models: Mapping[str, ModelSpec]
) -> None:
    """Codex opens a websocket at /responses first; 426 has it ask by HTTP, where faults can act."""
    (tmp_path / "model.yaml").write_text("replies: [{text: hi}]")
    context, received, status = talked(tmp_path, models=models, path="/responses")
    assert (received, status, context.troubles, context.trace) == ([], 426, [], [])
    note = "a websocket to the model (/v1/responses) was rejected with status 426: faults act on the HTTP API instead"
    assert context.notes == [note]


@pytest.mark.parametrize(
    ("check", "settings"),
    [("tool_not_called", {"tool": "transfer"}), ("max_calls", {"max": 3}), ("tool_called", {"tool": "search"})],
)
def test_what_a_rule_did_not_see_may_have_been_said_on_the_websocket(
    tmp_path: Path, check: str, settings: dict[str, Any]
) -> None:
    context, _, _ = talked(tmp_path)
    turn = Turn("hi", "done")
    seen = Observation("t", (turn,), trace=tuple(context.trace))
    outcome, found = RuleJudge(Invariant("r", check, settings), 1_000).judge_trial(turn, seen, None)
    assert outcome == "unproven"
    assert "websocket" in found.reason
