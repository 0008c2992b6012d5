"""What the ledger says would have come, where no reply did."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.model.scenario import Injection
from holdfast.planes.mcp.session import NotAToolResult
from holdfast.protocols.fault import Call, Dropped, Failed, Reply
from planes_kit import FakeContext


async def _sleep(ms: float) -> None:
    await asyncio.sleep(ms / 1000)


def would(raising: BaseException) -> str:
    context = FakeContext([Injection("tool", "*", "malformed")])

    async def forward(call: Call) -> Reply:
        raise raising

    async def main() -> None:
        await context.injector.inject(Call("mcp", "search", {}, 1), forward, _sleep)

    with pytest.raises(type(raising)):
        asyncio.run(main())
    (met,) = context.ledger
    assert met.effect == "no_effect"
    return met.would


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (asyncio.CancelledError(), "nothing: the call was abandoned"),
        (ConnectionResetError("the client gave up waiting"), "nothing: the client gave up waiting"),
        (NotAToolResult("no such file"), "no such file"),
        (Failed("Service Unavailable", status=503), "failed: 503 Service Unavailable"),
        (Dropped("search: lost"), "dropped: search: lost"),
        (ValueError("boom"), "ValueError: boom"),  # a function of the agent's own
        (ConnectionResetError(104, "Connection reset by peer"), "ConnectionResetError: [Errno 104] "),
    ],
)
def test_no_reply_is_reported_in_plain_words(raised: BaseException, words: str) -> None:
    assert would(raised).startswith(words)
