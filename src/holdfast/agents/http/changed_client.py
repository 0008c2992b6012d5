"""The client for mutated requests: sends the changed request on its own connections."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from math import inf

from holdfast.agents.http.changed_request import WireRequest, build_wire_request
from holdfast.agents.http.client import (
    BODY_LIMIT,
    HttpClient,
    HttpExchange,
    load_certificates,
    make_exchange,
    make_unreachable_error,
)
from holdfast.agents.http.reply_headers import CookieJar
from holdfast.agents.http.request import HttpRequest, RequestForm
from holdfast.agents.http.template import RequestTemplate
from holdfast.http1.client import WasAccepted
from holdfast.http1.outgoing_request import Endpoint
from holdfast.http1.reply_parser import CollectedReply, ReplyCollector
from holdfast.model.task import RequestChange, Task
from holdfast.processes.program import cancel_and_wait
from holdfast.streams.sockets import NotConnected, RawSocket, open_socket

PIECES = 10
"""Number of pieces that slow data is split into."""
_PIECE = 65_536
_SMALL_READ = 64


class RawExchange:
    """Sends one request and reads its reply; `slept_s` is the duration of Holdfast's own pauses."""

    def __init__(self, change: RequestChange, wire: WireRequest, body_limit: int, slow_s: float) -> None:
        """`slow_s` is the total of all pauses."""
        self._slow = change.slow
        self._wire = wire
        self._got = ReplyCollector(wire.method, body_limit)
        self._slow_s = slow_s
        self._reply_started = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.slept_s = 0.0

    async def perform(self, place: Endpoint, deadline: float, *, abandon: bool = False) -> CollectedReply:
        """Return what arrived until `deadline`, on the loop's clock.

        Raises NotConnected if there was no connection.
        """
        # With a usual buffer the kernel would take the complete reply immediately, and the agent would notice nothing.
        room = 2_048 if self._slow == "reply" else None
        link = await _connect(place, deadline - self._loop.time(), room)
        sending = asyncio.create_task(self._send(link))
        try:
            async with asyncio.timeout_at(deadline):
                await (sending if abandon else self._read(link))
        except TimeoutError:
            self._got.reply.late = True
        finally:
            try:
                await cancel_and_wait(sending)
            finally:
                link.close()
        return self._got.reply

    async def _send(self, link: RawSocket) -> None:
        """Send the complete request. A server may answer early and reject the rest, so reading continues."""
        with suppress(OSError):
            head, rest = self._wire.head, self._wire.rest
            if self._slow == "head":
                await self._send_slowly(link, head)
            else:
                await link.send(head)
            if self._slow == "before_body":
                await self._pause(self._slow_s)
            elif self._slow == "continue":
                await self._wait_for_reply()
            if self._slow == "body":
                await self._send_slowly(link, rest)
            else:
                for at in range(0, len(rest), _PIECE):
                    await link.send(rest[at : at + _PIECE])

    async def _send_slowly(self, link: RawSocket, data: bytes) -> None:
        size = max(1, -(-len(data) // PIECES))
        for at in range(0, len(data), size):
            if at:
                await self._pause(self._slow_s / (PIECES - 1))
            await link.send(data[at : at + size])

    async def _read(self, link: RawSocket) -> None:
        """Read until the reply is complete or ends; the first pieces small and slowly if required."""
        slow = PIECES if self._slow == "reply" else 0
        while not self._got.over:
            try:
                data = await (link.receive(_SMALL_READ) if slow else link.receive())
            except OSError:
                self._got.on_disconnect(False)
                return
            if not data:
                self._got.on_disconnect(True)
                return
            self._reply_started.set()
            self._got.feed(data)
            if slow and not self._got.over:
                slow -= 1
                await self._pause(self._slow_s / PIECES)

    async def _wait_for_reply(self) -> None:
        start = self._loop.time()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._slow_s):
                await self._reply_started.wait()
        self.slept_s += self._loop.time() - start

    async def _pause(self, seconds: float) -> None:
        start = self._loop.time()
        await asyncio.sleep(seconds)
        self.slept_s += self._loop.time() - start


COPIES_LIMIT = 8
SLOW_PART = 0.25
"""The fraction of the agent's time that Holdfast's own pauses may take."""
_MARK = "holdfast-prompt-stands-here"
_OWN_POSITION = 1
"""The position of the task's question among the others: neither first nor last nor in the middle.

An agent that gives everybody the first, the last, the previous or the reversed answer then gives a wrong one.
"""
_GAP_S = 0.01
"""Delay between the starts of different questions: they arrive in order, and the agent has all of them concurrently."""
_SILENT = "the agent closed the connection without a reply: a refusal, since the request was malformed on purpose"


class ChangedClient:
    """Sends like HttpClient, with one change to every request. It keeps no connections open."""

    def __init__(self, client: HttpClient, form: RequestForm, change: RequestChange, task: Task) -> None:
        self._client = client
        self._form = form
        self._change = change
        self._prompt = task.turns[0]

    def make_cookie_jar(self) -> CookieJar:
        return self._client.make_cookie_jar()

    async def close(self) -> None:
        """Do nothing: no connection is kept."""

    async def send(
        self, request: HttpRequest, cookies: CookieJar | None = None, limit_s: float = inf, accepted: WasAccepted = bool
    ) -> HttpExchange:
        """Return the result of the changed request, or of the worst of its copies, within `limit_s`.

        Raises AgentUnavailable if no connection could be made at all.
        """
        limit_s = min(self._client.timeout_s, limit_s)
        if limit_s <= 0:
            return HttpExchange("timeout", "no time was left to call the agent")
        cookie = self._client.head.cookie if cookies is None else cookies.header
        if self._change.copies > 1:
            return await self._send_copies(request, cookie, limit_s)
        try:
            return await self._send_copy(self._build_wire_request(request, cookie), limit_s, cookies)
        except NotConnected as gone:
            raise make_unreachable_error(gone.kind, gone.__cause__, self._client.url, limit_s) from gone

    def _build_wire_request(self, request: HttpRequest, cookie: str) -> WireRequest:
        parameter = find_prompt_parameter(self._form)
        return build_wire_request(self._change, self._client.url, self._client.head.lines, request, cookie, parameter)

    async def _send_copy(
        self,
        wire: WireRequest,
        limit_s: float,
        cookies: CookieJar | None = None,
        *,
        abandon: bool = False,
        after_s: float = 0.0,
    ) -> HttpExchange:
        loop = asyncio.get_running_loop()
        if after_s:
            await asyncio.sleep(after_s)
        change, start = self._change, loop.time()
        exchange = RawExchange(change, wire, BODY_LIMIT, min(change.slow_ms / 1000, limit_s * SLOW_PART))
        reply = await exchange.perform(self._client.url.endpoint, start + limit_s, abandon=abandon)
        if reply.status is not None and 400 <= reply.status < 500:
            reply.failure = None  # it has rejected the request, and need not read on or end cleanly
        if cookies is not None:
            cookies.store(reply.headers)
        result = make_exchange(reply, limit_s)
        result.latency_ms = max(0.0, loop.time() - start - exchange.slept_s) * 1000
        if change.malformed and result.ending == "closed" and result.status is None:
            await self._explain(result, limit_s)
        return result

    async def _explain(self, exchange: HttpExchange, limit_s: float) -> None:
        """Decide what the missing reply to a malformed request means: a rejection, or a crash of the agent."""
        try:
            (await _connect(self._client.url.endpoint, limit_s)).close()
        except NotConnected:
            exchange.ending, exchange.detail = "crashed", "it stopped accepting connections after a malformed request"
        else:
            exchange.note = _SILENT

    async def _send_copies(self, request: HttpRequest, cookie: str, limit_s: float) -> HttpExchange:
        """Send all copies concurrently; return the worst exchange, and of equals the last."""
        change = self._change
        # Copies of one request show what an agent does with duplicates. With `others`, all but one carry another
        # question: an agent that mixes up its callers then gives the task's question somebody else's answer.
        count = min(change.copies, COPIES_LIMIT)
        wires = [self._build_wire_request(request, cookie)] * count
        if change.others:
            other = self._build_wire_request(self._form.fill(change.others, self._prompt), cookie)
            wires = [wire if n == _OWN_POSITION else other for n, wire in enumerate(wires)]
        gap_s = _GAP_S if change.others else 0.0
        sends = [
            self._send_copy(wire, limit_s, abandon=n < change.abandoned, after_s=n * gap_s)
            for n, wire in enumerate(wires)
        ]
        results = await asyncio.gather(*sends, return_exceptions=True)
        awaited = results[min(change.abandoned, count - 1) :]
        counted: list[HttpExchange] = []
        for result in awaited:
            if isinstance(result, HttpExchange):
                counted.append(result)
            elif isinstance(result, NotConnected):
                counted.append(HttpExchange("closed", "it accepted no new connection while others were open"))
            else:
                raise result
        # If not a single copy was accepted, the agent is not there: that is no finding about concurrent requests.
        last_result = awaited[-1]
        if isinstance(last_result, NotConnected) and all(isinstance(result, NotConnected) for result in awaited):
            raise make_unreachable_error(
                last_result.kind, last_result.__cause__, self._client.url, limit_s
            ) from last_result
        if change.others and all(_rank(exchange) < _BAD for exchange in counted):
            worst = counted[_OWN_POSITION]  # only that one sent the task's own question
        else:
            worst = max(reversed(counted), key=_rank)
        worst.note = f"{count} concurrent requests: " + _describe_counts(counted, count)
        return worst


_REFUSED, _ANSWERED, _BAD = 0, 1, 2


def _rank(exchange: HttpExchange) -> int:
    if exchange.ending != "answered" or (exchange.status or 0) >= 500:
        return _BAD
    return _REFUSED if (exchange.status or 0) >= 400 else _ANSWERED


def _describe_counts(exchanges: list[HttpExchange], count: int) -> str:
    ranks = [_rank(exchange) for exchange in exchanges]
    words = {_ANSWERED: "answered", _REFUSED: "refused", _BAD: "ended badly"}
    counts = [f"{ranks.count(rank)} {word}" for rank, word in words.items() if rank in ranks]
    return ", ".join(
        [*counts, *([f"{count - len(exchanges)} disconnected without waiting"] if len(exchanges) < count else [])]
    )


def find_prompt_parameter(form: RequestForm) -> str:
    """Return the field with the agent's prompt: in the query, otherwise in the body; otherwise `input`."""
    for name, value in form.query:
        if _MARK in _mark_prompt(value):
            return _mark_prompt(name)
    if form.body is not None and form.body.is_json:
        value = json.loads(_mark_prompt(form.body))
        if isinstance(value, dict):
            return next((str(k) for k, v in value.items() if _MARK in json.dumps(v)), "input")
    return "input"


def _mark_prompt(template: RequestTemplate) -> str:
    """Return the template with a mark in place of its prompt."""
    return "".join(p if isinstance(p, str) else p.write(_MARK if p.name == "prompt" else "x") for p in template.parts)


async def _connect(place: Endpoint, limit_s: float, room: int | None = None) -> RawSocket:
    trust = load_certificates if place.scheme == "https" else None
    return await open_socket(place.host, place.port, limit_s, trust, room=room)
