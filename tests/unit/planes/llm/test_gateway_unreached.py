"""An upstream that is down, slow or not a model's server is distinguished from faults and from the agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web
from gateway_agent import Respond, run_scripted, run_served

from gateway_trial import gateway_for
from golden_words import Golden
from holdfast.http1.client import UpstreamFailed, Upstreams
from holdfast.http1.server import Exchange, serve
from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection
from planes_kit import FakeContext

PAGE = "<!DOCTYPE html><html><body>Please sign in to the hotel's network</body></html>"
GOOD = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}


def body(*, stream: bool = False) -> bytes:
    flag = b"true" if stream else b"false"
    return b'{"model": "m", "stream": %b, "messages": [{"role": "user", "content": "hello"}]}' % flag


def after(
    folder: Path,
    responds: Sequence[Respond],
    faults: Sequence[Injection] = (),
    *,
    stream: bool = False,
    path: str = "/chat/completions",
    leave_s: float | None = None,
) -> FakeContext:
    """The trial after one request for each way to respond; with `leave_s` the client waits no longer than that."""
    remaining = iter(responds)

    async def respond(request: web.Request) -> web.StreamResponse:
        return await next(remaining)(request)

    async def agent(url: str) -> None:
        for _ in responds:
            try:
                await ask(url + path, body(stream=stream), leave_s)
            except TimeoutError:
                await asyncio.sleep(0.4)  # upstream answers while the trial goes on

    return run_served(folder, respond, agent, *faults)


async def ask(url: str, data: bytes, leave_s: float | None = None) -> None:
    client = Upstreams()
    try:
        with contextlib.suppress(UpstreamFailed):  # what a client sees of a lost connection
            async with asyncio.timeout(leave_s):
                reply = await client.send("POST", url, [("content-type", "application/json")], data)
                await reply.read(100_000)
    finally:
        await client.close()


def says(status: int, text: str, kind: str = "application/json") -> Respond:
    async def respond(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, content_type=kind)

    return respond


async def good(request: web.Request) -> web.StreamResponse:
    return web.json_response(GOOD)


async def gone(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def late(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(0.3)
    return await good(request)


@pytest.mark.parametrize("bad", [gone, says(500, "{}"), says(401, "{}"), says(200, PAGE, "text/html")])
def test_a_failing_upstream_is_a_harness_error(tmp_path: Path, bad: Respond) -> None:
    assert after(tmp_path, [good, bad]).troubles
    assert after(tmp_path, [bad, good]).troubles


@pytest.mark.parametrize("mode", ["rate_limit", "server_error", "stream_cut", "timeout", "empty"])
def test_an_injected_failure_is_no_harness_error(tmp_path: Path, mode: str) -> None:
    settings = {"delay_ms": 1} if mode == "timeout" else {}
    context = after(tmp_path, [good], [Injection("llm", "*", mode, settings)])
    assert [met.effect for met in context.ledger] == ["met"]
    assert context.troubles == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("faulty", [False, True])
def test_a_page_where_a_reply_of_a_model_should_be_names_the_address_and_what_came(
    tmp_path: Path, stream: bool, status: int, faulty: bool, golden: Golden
) -> None:
    faults = [Injection("llm", "*", "truncated_response", {"max_tokens": 2})] if faulty else []
    context = after(tmp_path, [says(status, PAGE, "text/html")], faults, stream=stream)
    (why,) = context.troubles
    assert "/v1/chat/completions" in why
    golden(why)
    assert [met.effect for met in context.ledger] == ["no_effect"] * faulty


@pytest.mark.parametrize("text", ["", "not json", "[1, 2]", "null"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_unreadable_reply_is_a_harness_error(tmp_path: Path, text: str, stream: bool) -> None:
    context = after(tmp_path, [says(200, text)], stream=stream)
    assert len(context.troubles) == 1


def test_a_provider_may_reject_the_agents_request(tmp_path: Path) -> None:
    context = after(tmp_path, [says(400, '{"error": {"message": "no such field"}}')])
    assert context.troubles == []


def test_a_model_that_the_provider_does_not_know_is_no_doing_of_the_agents(tmp_path: Path, golden: Golden) -> None:
    unknown = says(404, '{"error": {"message": "the model m does not exist"}}')
    (why,) = after(tmp_path, [unknown]).troubles
    golden(why)
    assert after(tmp_path, [unknown], path="/files").troubles == []


def test_replies_of_other_endpoints_are_not_checked(tmp_path: Path) -> None:
    assert after(tmp_path, [says(200, "plain")], path="/files").troubles == []


def test_the_wait_for_upstream_ends_when_the_client_leaves(tmp_path: Path) -> None:
    context = after(tmp_path, [late], leave_s=0.1)
    (event,) = context.trace
    assert event.error_type == "client_gone"
    assert 90 < event.waited_ms < 500


def test_the_ledger_describes_the_missing_reply(tmp_path: Path) -> None:
    cut = [Injection("llm", "*", "truncated_response", {"max_tokens": 2})]
    (met,) = after(tmp_path, [says(500, "{}")], cut).ledger
    assert met.would.startswith("http://127.0.0.1:")
    assert met.would.endswith(" answered 500")
    (met,) = after(tmp_path, [gone], cut).ledger
    assert met.would.startswith("the model at http://127.0.0.1:")


def test_a_delay_of_the_users_own_script_is_not_a_silent_upstream(tmp_path: Path) -> None:
    async def agent(url: str) -> None:
        with contextlib.suppress(TimeoutError):
            await ask(f"{url}/chat/completions", body(), 0.2)

    (event,) = run_scripted(tmp_path, "replies: [{text: hi, delay_ms: 2000}]", agent).trace
    assert (event.error_type, event.waited_ms) == ("client_gone", 0.0)


# An upstream's own refusal is told with what it says, also of an agent that leaves when it has seen the status.


ASKED = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'
REFUSED = b'{"error": {"message": "slow down"}}'


@pytest.mark.parametrize("length", [len(REFUSED), None], ids=["of known length", "chunked"])
def test_the_body_of_a_refusal_that_comes_after_its_head_is_reported(
    tmp_path: Path, length: int | None, golden: Golden
) -> None:
    async def late(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.start(429, (("content-type", "application/json"),), length)
        await asyncio.sleep(0.1)
        await exchange.write(REFUSED)
        await exchange.finish()

    async def main() -> FakeContext:
        context, server = FakeContext(), await serve(late)
        models = {"*": ModelSpec("openai", base_url=f"http://127.0.0.1:{server.port}/v1", api_key="sk-own")}
        try:
            async with gateway_for(context, tmp_path, models) as address:
                reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
                path = f"/{address.token}/openai/v1/chat/completions".encode()
                writer.write(b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (path, len(ASKED)) + ASKED)
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
                assert head.startswith(b"HTTP/1.1 429")
                writer.close()
        finally:
            await server.close()
        return context

    (trouble,) = asyncio.run(main()).troubles
    golden(trouble)
