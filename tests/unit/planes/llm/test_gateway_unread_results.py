"""A fault on a tool result is met once a model has answered a request with it and the agent was there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway_trial import gateway_for
from holdfast.http1.server import Exchange, serve
from holdfast.model.completion import ToolCall
from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.llm import tool_results as results
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest, ToolResult
from holdfast.planes.llm.tool_results import ToolResults
from planes_kit import FakeContext

SCRIPT = """
replies:
  - match: {tool: search, prompt: "*slowly*"}
    text: "told in many words"
    delay_ms: 300
    token_delay_ms: 100
  - match: {tool: search}
    text: "told"
  - match: {prompt: "*else*"}
    text: "something else"
  - tool_calls: [{name: search, arguments: {q: kettle}}]
"""
WRONG = Injection("tool", "search", "error")
CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q": "kettle"}'}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "3 left"}
UNREAD = ("error", "no_effect", "no model read the result")


def on_call(n: int, mode: str, **settings: Any) -> Injection:
    return Injection("llm", "*", mode, settings, Schedule(on_call=n))


class Agent:
    """A client that asks, answers the call that it is told to make, and may leave where it likes."""

    def __init__(self, url: str) -> None:
        self._at = urlsplit(url)
        self.said: list[dict[str, Any]] = []
        self.stream = False

    async def called(self, prompt: str = "How many kettles?") -> None:
        """Up to the result, which is not sent yet."""
        self.said = [{"role": "user", "content": prompt}]
        reply = await self.ask()
        assert b"tool_calls" in reply
        call = {
            **CALL,
            "id": json.loads(reply.partition(b"\r\n\r\n")[2])["choices"][0]["message"]["tool_calls"][0]["id"],
        }
        self.said += [{"role": "assistant", "tool_calls": [call]}, {**RESULT, "tool_call_id": call["id"]}]

    async def send(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        body = json.dumps({"model": "m", "stream": self.stream, "messages": self.said}).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._at.port)
        head = f"POST {self._at.path}/chat/completions HTTP/1.1\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
        writer.write(head.encode() + b"\r\n" + body)
        return reader, writer

    async def ask(self) -> bytes:
        reader, writer = await self.send()
        reply = await reader.read()
        writer.close()
        return reply

    async def leave(self, after_s: float = 0.0) -> None:
        _, writer = await self.send()
        await asyncio.sleep(after_s)
        writer.close()
        await asyncio.sleep(0.05)


def after(
    folder: Path,
    act: Callable[[Agent], Awaitable[None]],
    *faults: Injection,
    base_url: str | None = None,
) -> list[tuple[str, str, str]]:
    """What the ledger has of the tool, after what an agent did."""
    (folder / "model.yaml").write_text(SCRIPT)
    context = FakeContext([WRONG, *faults])

    async def main() -> None:
        own = ModelSpec("script", script="model.yaml") if base_url is None else ModelSpec("openai", base_url=base_url)
        async with gateway_for(context, folder, {"*": own}) as address:
            await act(Agent(address.environ["OPENAI_BASE_URL"]))

    asyncio.run(asyncio.wait_for(main(), 20))
    return [(met.mode, met.effect, met.note) for met in context.ledger if met.plane == "tool_result"]


def effect(found: list[tuple[str, str, str]]) -> list[str]:
    return [effect for _, effect, _ in found]


def test_a_fault_is_met_if_the_agent_reads_the_reply(tmp_path: Path) -> None:
    async def act(agent: Agent) -> None:
        await agent.called()
        assert b"told" in await agent.ask()

    assert effect(after(tmp_path, act)) == ["met"]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("after_s", [0.0, 0.1], ids=["at once", "after a while"])
def test_a_fault_is_not_met_if_the_agent_drops_the_request(tmp_path: Path, after_s: float, stream: bool) -> None:
    async def act(agent: Agent) -> None:
        await agent.called("How many kettles? Say slowly.")
        agent.stream = stream
        await agent.leave(after_s)
        agent.stream, agent.said = False, [{"role": "user", "content": "Something else."}]
        assert b"something else" in await agent.ask()

    assert after(tmp_path, act) == [UNREAD]


def test_a_fault_is_met_if_the_agent_retries_and_reads(tmp_path: Path) -> None:
    async def act(agent: Agent) -> None:
        await agent.called("How many kettles? Say slowly.")
        await agent.leave(0.1)
        assert b"told" in await agent.ask()

    assert effect(after(tmp_path, act)) == ["met"]


def test_a_fault_is_met_if_the_agent_reads_part_of_the_stream(tmp_path: Path) -> None:
    async def act(agent: Agent) -> None:
        await agent.called("How many kettles? Say slowly.")
        agent.stream = True
        reader, writer = await agent.send()
        assert await reader.readuntil(b"told")
        writer.close()

    assert effect(after(tmp_path, act)) == ["met"]


def test_a_fault_is_not_met_if_the_trial_ends_before_the_reply(tmp_path: Path) -> None:
    async def act(agent: Agent) -> None:
        await agent.called("How many kettles? Say slowly.")
        _, writer = await agent.send()
        await asyncio.sleep(0.1)
        writer.transport.abort()

    assert after(tmp_path, act) == [UNREAD]


@pytest.mark.parametrize("mode", ["rate_limit", "server_error", "quota", "context_length"])
def test_no_model_reads_a_request_that_a_fault_rejects(tmp_path: Path, mode: str) -> None:
    async def gives_up(agent: Agent) -> None:
        await agent.called()
        assert b"told" not in await agent.ask()

    async def tries_again(agent: Agent) -> None:
        await gives_up(agent)
        assert b"told" in await agent.ask()

    assert after(tmp_path, gives_up, on_call(2, mode)) == [UNREAD]
    assert effect(after(tmp_path, tries_again, on_call(2, mode))) == ["met"]


@pytest.mark.parametrize(("mode", "settings"), [("empty", {}), ("truncated_response", {"max_tokens": 0})])
def test_a_fault_on_the_reply_does_not_hide_that_the_model_read_the_result(
    tmp_path: Path, mode: str, settings: dict[str, Any]
) -> None:
    async def act(agent: Agent) -> None:
        await agent.called()
        await agent.ask()

    assert effect(after(tmp_path, act, on_call(2, mode, **settings))) == ["met"]


@pytest.mark.parametrize(("status", "effects"), [(500, ["no_effect"]), (429, ["no_effect"]), (200, ["met"])])
@pytest.mark.parametrize("fault", [(), (on_call(2, "slow_tokens", ttft_ms=1),)], ids=["calm", "a slow model"])
def test_no_model_reads_a_request_that_upstream_rejects(
    tmp_path: Path, status: int, effects: list[str], fault: tuple[Injection, ...]
) -> None:
    async def upstream(exchange: Exchange) -> None:
        asked = json.loads(await exchange.read_body())
        has_result = asked["messages"][-1]["role"] == "tool"
        said = {"content": "told"} if has_result else {"content": None, "tool_calls": [CALL]}
        choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": "stop"}
        body = {"error": {"message": "no"}} if has_result and status != 200 else {"model": "m", "choices": [choice]}
        headers = (("content-type", "application/json"),)
        await exchange.respond(status if has_result else 200, headers, json.dumps(body).encode())

    async def act(agent: Agent) -> None:
        await agent.called()
        await agent.ask()

    async def main() -> list[tuple[str, str, str]]:
        server = await serve(upstream)
        try:
            url = f"http://127.0.0.1:{server.port}/v1"
            return await asyncio.to_thread(after, tmp_path, act, *fault, base_url=url)
        finally:
            await server.close()

    assert effect(asyncio.run(main())) == effects


def test_an_unchanged_result_needs_no_reader() -> None:
    context = FakeContext([Injection("tool", "search", "schema_drift", {"drop": ["none"]})])
    one = ToolResults(context, frozenset, faulty=True)
    asyncio.run(settled(one, 1))
    one.close()
    assert [(met.effect, "no model" in met.note) for met in context.ledger] == [("no_effect", False)]


def test_the_number_of_unread_results_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "OPEN_KEPT", 3)
    context = FakeContext([WRONG])
    one = ToolResults(context, frozenset, faulty=True)
    asyncio.run(settled(one, 5))
    assert effect([(met.mode, met.effect, met.note) for met in context.ledger]) == ["no_effect"] * 2 + ["met"] * 3
    one.close()
    assert {met.effect for met in context.ledger} == {"no_effect"}


async def settled(one: ToolResults, number: int) -> None:
    """So many results, one request after another, none of which is answered."""
    for n in range(number):
        one.record_calls((ToolCall(f"c{n}", "search", "{}"),), ModelRequest("m"))
        await one.settle(
            ModelRequest("m", (ChatMessage("tool", results=(ToolResult(f"c{n}", "search", "3 left", "{}"),)),))
        )
