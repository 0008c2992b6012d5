"""A address: one unguessable address, one trial at a time."""

import asyncio
import base64
from contextlib import asynccontextmanager

import pytest

from golden_words import Golden
from holdfast.http1.server import Exchange
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.planes.injection.weather import OTHERS, TARGETS_KEPT, Weather
from holdfast.planes.trial_address import TrialAddress
from planes_kit import FakeContext


class ServedTrial:
    """Says what it was asked for."""

    def __init__(self, context):
        self.context = context
        self.closed = False
        self.why = []

    async def serve_model(self, exchange: Exchange, provider: str, path: str) -> None:
        await exchange.respond(200, body=f"{self.context.trial.id} model {provider} {path}".encode())

    async def serve_web(self, exchange: Exchange) -> None:
        await exchange.respond(200, body=f"web {exchange.head.target}".encode())

    async def serve_mcp(self, exchange: Exchange, server: str) -> None:
        status = 409 if exchange.head.method == "CONNECT" else 200  # a CONNECT that succeeds has no body to look at
        await exchange.respond(status, body=f"mcp {server}".encode())

    def report_error(self, why: str) -> None:
        self.why.append(why)

    def close(self) -> None:
        self.closed = True


@asynccontextmanager
async def moored():
    address = await TrialAddress.open(lambda place, context: ServedTrial(context), lambda place: {"URL": place.url})
    try:
        yield address
    finally:
        await address.close()


class Client:
    """A connection that stays open."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, address):
        return cls(*await asyncio.open_connection("127.0.0.1", address.port))

    async def ask(self, line: str, *headers: str) -> tuple[int, str]:
        self.writer.write(
            f"{line} HTTP/1.1\r\nhost: x\r\n{''.join(h + chr(13) + chr(10) for h in headers)}\r\n".encode()
        )
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        return int(head.split()[1]), (await self.reader.readexactly(length)).decode()

    def close(self):
        self.writer.close()


def basic(password: str) -> str:
    return "proxy-authorization: Basic " + base64.b64encode(f"holdfast:{password}".encode()).decode()


async def once(address, line, *headers):
    client = await Client.connect(address)
    try:
        return await client.ask(line, *headers)
    finally:
        client.close()


async def test_a_request_reaches_the_plane_that_its_path_names():
    async with moored() as address:
        with address.serve_trial(FakeContext(id="aaaaaaaaaaaa")):
            base = f"/{address.token}"
            assert await once(address, f"POST {base}/openai/v1/chat/completions") == (
                200,
                "aaaaaaaaaaaa model openai /v1/chat/completions",
            )
            assert await once(address, f"POST {base}/mcp/files") == (200, "mcp files")
            proxied = await once(address, "GET http://example.com/x", basic(address.token))
            assert proxied == (200, "web http://example.com/x")
            relayed = await once(address, "CONNECT holdfast.mcp:my%20files", basic(address.token))
            assert relayed == (409, "mcp my files")


@pytest.mark.parametrize("path", ["/wrong/openai/v1/models", "/", "/openai/v1/models", "//openai/x"])
async def test_a_wrong_token_gets_404(path):
    async with moored() as address:
        with address.serve_trial(FakeContext()):
            assert (await once(address, f"GET {path}"))[0] == 404


@pytest.mark.parametrize("headers", [(), (basic("wrong"),), ("proxy-authorization: Bearer x",)])
async def test_the_proxy_asks_strangers_for_its_password(headers):
    async with moored() as address:
        with address.serve_trial(FakeContext()):
            assert (await once(address, "GET http://example.com/", *headers))[0] == 407
            assert (await once(address, "CONNECT example.com:443", *headers))[0] == 407


async def test_a_request_outside_of_a_trial_gets_503():
    async with moored() as address:
        line = f"GET /{address.token}/openai/v1/models"
        assert (await once(address, line))[0] == 503
        with address.serve_trial(FakeContext()):
            assert (await once(address, line))[0] == 200
        assert (await once(address, line))[0] == 503
        assert (await once(address, "GET http://example.com/", basic(address.token)))[0] == 503


async def test_a_connection_that_is_older_than_the_trial_gets_503():
    async with moored() as address:
        line = f"GET /{address.token}/openai/v1/models"
        old = await Client.connect(address)
        while not address.listener.connections:
            await asyncio.sleep(0.001)
        with address.serve_trial(FakeContext()):
            assert (await old.ask(line))[0] == 503
            assert await old.reader.read() == b""  # closed, so that its pool makes a new one
        old.close()


async def test_when_a_trial_is_over_its_connections_are_closed():
    async with moored() as address:
        with address.serve_trial(FakeContext()):
            kept = await Client.connect(address)
            assert (await kept.ask(f"GET /{address.token}/openai/v1/models"))[0] == 200
        assert await kept.reader.read() == b""
        kept.close()


async def test_requests_in_progress_end_with_the_trial():
    class Slow(ServedTrial):
        async def serve_model(self, exchange, provider, path):
            await asyncio.sleep(30)

    address = await TrialAddress.open(lambda place, context: Slow(context), lambda place: {})
    with address.serve_trial(FakeContext()):
        waiting = asyncio.create_task(once(address, f"GET /{address.token}/openai/v1/models"))
        await asyncio.sleep(0.05)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await asyncio.wait_for(waiting, 2)
    await address.close()


async def test_a_plane_that_breaks_is_an_error_of_the_trial_and_prints_nothing(capsys, golden: Golden):
    class Broken(ServedTrial):
        async def serve_model(self, exchange, provider, path):
            raise KeyError("oops")

    boarded = []

    def board(place, context):
        boarded.append(Broken(context))
        return boarded[-1]

    address = await TrialAddress.open(board, lambda place: {})
    with address.serve_trial(FakeContext()), pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await once(address, f"GET /{address.token}/openai/v1/models")
    await address.close()
    golden(boarded[0].why)
    assert capsys.readouterr().err == ""


async def test_a_plane_that_there_is_not_is_not_found():
    async with moored() as address:
        with address.serve_trial(FakeContext()):
            assert (await once(address, f"GET /{address.token}/foo/v1/models"))[0] == 404


def test_calls_before_the_first_trial_are_not_held_against_the_agent():
    async def main():
        async with moored() as address:
            assert (await once(address, f"GET /{address.token}/openai/v1/models"))[0] == 503
            first, second = FakeContext(), FakeContext()
            with address.serve_trial(first):
                pass
            assert (await once(address, f"GET /{address.token}/openai/v1/models"))[0] == 503
            with address.serve_trial(second):
                pass
            return first.troubles, second.troubles

    first, second = asyncio.run(main())
    assert "1 got 503" in first[0]
    assert second == []


# What one trial can make us remember is bounded.


def test_targets_beyond_the_limit_are_counted_together():
    weather = Weather(Trial("0" * 12, "contract", Scenario("calm"), Task(("q",))), print, print)
    for n in range(TARGETS_KEPT + 5):
        weather.find_applicable("http", f"http://x/{n}")
        weather.count("http", f"http://x/{n}")
    assert weather.calls[OTHERS] == 5
    assert weather.count("http", "http://x/0") == 2
    assert len(weather.calls) == TARGETS_KEPT + 1
