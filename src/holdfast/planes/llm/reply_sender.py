"""Writes replies to the agent, in the format that it speaks: a completion, a failure, what a provider sent."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from msgspec import Struct

from holdfast.http1.server import Exchange
from holdfast.model.codec import digest
from holdfast.model.completion import Completion, Cut, Pause, Trouble
from holdfast.planes.llm.codecs.asides import NOTHING, Like
from holdfast.planes.llm.codecs.codec import Headers
from holdfast.planes.llm.codecs.loose import dump
from holdfast.planes.llm.codecs.odd_chunks import odd_frames
from holdfast.planes.llm.sources.source import Query
from holdfast.protocols.fault import Dropped, Failed, Sleep, TimedOut

_JSON = (("content-type", "application/json"),)


class SentReply(Struct, frozen=True):
    """What the agent got: a status, if any came, and what went wrong, if anything did."""

    status: int | None = None
    trouble: str = ""


class ReplySender:
    """Answers one request; `n` is which call of the trial it is."""

    def __init__(self, exchange: Exchange, query: Query, n: int) -> None:
        self._exchange = exchange
        self._query = query
        self._n = n

    async def say(self, completion: Completion, like: Any, sleep: Sleep | None) -> SentReply:
        """A reply in the agent's format; `like` is the provider's own that it stands for: a Like, or decoded JSON."""
        codec, asked = self._query.codec, self._query.asked
        assert codec is not None
        assert asked is not None
        if not asked.stream:
            return await self._at_once(completion, codec.body(completion, asked, like), sleep)
        frames = codec.frames(completion, asked, like if isinstance(like, Like) else NOTHING)
        if completion.odd:
            frames = odd_frames(frames, Random(digest(f"{self._query.trial}:{self._n}".encode())))
        await self._exchange.start(200, (("content-type", codec.stream_type),))
        for frame in frames:
            if isinstance(frame, Pause):
                await _wait(frame.ms, sleep)
            elif isinstance(frame, Cut):
                self._exchange.cut()
                return SentReply(200, "connection_lost")
            else:
                await self._exchange.write(frame)
        await finish(self._exchange)
        return SentReply(200, error_in(completion))

    async def fail(self, failed: Failed) -> SentReply:
        """A failure that a fault made."""
        codec = self._query.codec
        if isinstance(failed, TimedOut):
            self._exchange.cut()
            return SentReply(trouble="timeout")
        if isinstance(failed, Dropped) or codec is None:
            self._exchange.cut(reset=True)
            return SentReply(trouble="connection_lost")
        refusal = codec.refusal(failed)
        return await self.send(refusal.status, refusal.headers, refusal.body)

    async def refuse(self, why: str, status: int) -> SentReply:
        """An error of ours, or of what stands behind us."""
        if self._exchange.answered:
            self._exchange.cut()
        elif self._query.codec is not None:
            refusal = self._query.codec.refusal(Failed(why, status=status))
            await self.send(refusal.status, refusal.headers, refusal.body)
        else:
            await self.send(status, _JSON, dump({"error": {"message": why, "type": "holdfast"}}))
        return SentReply(status, "upstream")

    async def send(self, status: int, headers: Headers, body: bytes) -> SentReply:
        """A whole reply, as it is."""
        try:
            await self._exchange.respond(status, headers, body)
        except ConnectionError:
            return SentReply(status, "client_gone")
        return SentReply(status, f"http_{status}" if status >= 300 else "")

    async def _at_once(self, completion: Completion, body: bytes, sleep: Sleep | None) -> SentReply:
        """A plain reply has no middle: its pauses come first, an error is its status, and a cut leaves half of it."""
        await _wait(sum(delta.ms for delta in completion.deltas if isinstance(delta, Pause)), sleep)
        for delta in completion.deltas:
            if isinstance(delta, Trouble):
                return await self.fail(Failed(delta.message, kind=delta.kind))
        if not any(isinstance(delta, Cut) for delta in completion.deltas):
            await self._exchange.respond(200, _JSON, body)
            return SentReply(200)
        await self._exchange.start(200, _JSON, length=len(body))
        await self._exchange.write(body[: len(body) // 2])
        self._exchange.cut()
        return SentReply(200, "connection_lost")


def error_in(completion: Completion) -> str:
    """The kind of the error that a reply ends in; empty if it ends well."""
    for delta in completion.deltas:
        if isinstance(delta, Trouble):
            return delta.kind
    return ""


async def finish(exchange: Exchange) -> None:
    """Ends a reply. Some clients leave once they have read the last event, before the end of the body."""
    try:
        await exchange.finish()
    except ConnectionError:
        return


async def _wait(ms: float, sleep: Sleep | None) -> None:
    if ms > 0:
        await (sleep(ms) if sleep is not None else asyncio.sleep(ms / 1000))
