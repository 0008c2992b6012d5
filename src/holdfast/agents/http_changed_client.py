"""The client of a mutation of the request: sends what the change makes of it, on connections of its own."""

from __future__ import annotations

import asyncio
import json
from math import inf

from holdfast.agents.http_changed_request import WireRequest, wire_request
from holdfast.agents.http_client import BODY_LIMIT, HttpClient, HttpExchange, exchange_of, trusted
from holdfast.agents.http_cookies import CookieJar
from holdfast.agents.http_raw_exchange import RawExchange
from holdfast.agents.http_request import HttpRequest, RequestForm
from holdfast.agents.http_template import RequestTemplate
from holdfast.agents.http_unreachable import unreachable
from holdfast.http1.client import Taken
from holdfast.http1.raw_socket import open_socket
from holdfast.model.task import RequestChange, Task
from holdfast.streams.failures import NotConnected

COPIES_LIMIT = 8
SLOW_PART = 0.25
"""How much of the agent's time our own pauses may take."""
_MARK = "holdfast-prompt-stands-here"
_OWN = 1
"""Where among other questions our own comes: neither first nor last nor in the middle, so that an agent that answers
everybody like the first, the last, the one before or in reverse gives it somebody else's answer."""
_GAP_S = 0.01
"""Between the starts of different questions: they arrive in this order, and an agent has them all at the same time."""
_SILENT = "the agent closed the connection without a reply: a refusal, since the request was malformed on purpose"


class ChangedClient:
    """Asks as HttpClient does, with one change to every request. It has nothing to close: each connection ends."""

    def __init__(self, client: HttpClient, form: RequestForm, change: RequestChange, task: Task) -> None:
        self._client = client
        self._form = form
        self._change = change
        self._prompt = task.turns[0]

    def cookies(self) -> CookieJar:
        return self._client.cookies()

    async def close(self) -> None:
        """Nothing is kept."""

    async def send(
        self, request: HttpRequest, cookies: CookieJar | None = None, limit_s: float = inf, taken: Taken = bool
    ) -> HttpExchange:
        """What the changed request, or the worst of its copies, came to, within `limit_s`.

        AgentUnavailable if no connection could be made at all.
        """
        limit_s = min(self._client.timeout_s, limit_s)
        if limit_s <= 0:
            return HttpExchange("timeout", "no time was left to ask it")
        cookie = self._client.head.cookie if cookies is None else cookies.header
        if self._change.copies > 1:
            return await self._copies(request, cookie, limit_s)
        try:
            return await self._one(self._wire(request, cookie), limit_s, cookies)
        except NotConnected as gone:
            raise unreachable(gone.kind, gone.__cause__, self._client.url, limit_s) from gone

    def _wire(self, request: HttpRequest, cookie: str) -> WireRequest:
        parameter = prompt_parameter(self._form)
        return wire_request(self._change, self._client.url, self._client.head.lines, request, cookie, parameter)

    async def _one(
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
        reply = await exchange.make(self._client.url.endpoint, start + limit_s, abandon=abandon)
        if reply.status is not None and 400 <= reply.status < 500:
            reply.failure = None  # it need not read on, nor end well: it has said no
        if cookies is not None:
            cookies.take(reply.headers)
        seen = exchange_of(reply, limit_s)
        seen.latency_ms = max(0.0, loop.time() - start - exchange.slept_s) * 1000
        if change.malformed and seen.ending == "closed" and seen.status is None:
            await self._explain(seen, limit_s)
        return seen

    async def _explain(self, seen: HttpExchange, limit_s: float) -> None:
        """No reply to what was malformed: a refusal, unless it was the end of the agent."""
        try:
            (await open_socket(self._client.url.endpoint, limit_s, trusted)).close()
        except NotConnected:
            seen.ending, seen.detail = "crashed", "it takes no connections any more after a malformed request"
        else:
            seen.note = _SILENT

    async def _copies(self, request: HttpRequest, cookie: str, limit_s: float) -> HttpExchange:
        """All copies concurrently: the exchange of the worst; among equals, the last."""
        change = self._change
        count = min(change.copies, COPIES_LIMIT)
        wires = [self._wire(request, cookie)] * count
        if change.others:
            other = self._wire(self._form.fill(change.others, self._prompt), cookie)
            wires = [wire if n == _OWN else other for n, wire in enumerate(wires)]
        gap_s = _GAP_S if change.others else 0.0
        asked = [
            self._one(wire, limit_s, abandon=n < change.abandoned, after_s=n * gap_s) for n, wire in enumerate(wires)
        ]
        came = await asyncio.gather(*asked, return_exceptions=True)
        seen = [self._copy(one, limit_s) for one in came[min(change.abandoned, count - 1) :]]
        if all(one is None for one in seen):
            gone = came[-1]
            assert isinstance(gone, NotConnected)
            raise unreachable(gone.kind, gone.__cause__, self._client.url, limit_s) from gone
        found = [one or HttpExchange("closed", "it took no connection while it had others") for one in seen]
        if change.others and all(_rank(one) < _BAD for one in found):
            worst = found[_OWN]  # only that one asked what the task asks
        else:
            worst = max(reversed(found), key=_rank)
        worst.note = f"{count} requests at once: " + _counted(found, count)
        return worst

    def _copy(self, came: HttpExchange | BaseException, limit_s: float) -> HttpExchange | None:
        """What one copy came to; None if there was no connection."""
        if isinstance(came, HttpExchange):
            return came
        if isinstance(came, NotConnected):
            return None
        raise came


_REFUSED, _ANSWERED, _BAD = 0, 1, 2


def _rank(seen: HttpExchange) -> int:
    if seen.ending != "answered" or (seen.status or 0) >= 500:
        return _BAD
    return _REFUSED if (seen.status or 0) >= 400 else _ANSWERED


def _counted(found: list[HttpExchange], count: int) -> str:
    ranks = [_rank(one) for one in found]
    words = {_ANSWERED: "answered", _REFUSED: "refused", _BAD: "ended badly"}
    told = [f"{ranks.count(rank)} {word}" for rank, word in words.items() if rank in ranks]
    return ", ".join([*told, *([f"{count - len(found)} left without waiting"] if len(found) < count else [])])


def prompt_parameter(form: RequestForm) -> str:
    """The name under which the agent is given its prompt: in the query, else in the body; else `input`."""
    for name, value in form.query:
        if _MARK in _marked(value):
            return _marked(name)
    if form.body is not None and form.body.is_json:
        value = json.loads(_marked(form.body))
        if isinstance(value, dict):
            return next((str(k) for k, v in value.items() if _MARK in json.dumps(v)), "input")
    return "input"


def _marked(template: RequestTemplate) -> str:
    """The template with a mark where its prompt goes."""
    return "".join(p if isinstance(p, str) else p.write(_MARK if p.name == "prompt" else "x") for p in template.parts)
