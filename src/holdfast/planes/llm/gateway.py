"""The LLM gateway: the model calls of an agent, in the provider's own format, with the faults of its trial on them.

A call that no fault touches passes as bytes. One that a fault fires on is read to its end, changed in neutral form and
written again in the format that the agent speaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping
from typing import Any

import msgspec

from holdfast.errors import HarnessError
from holdfast.model.spec import ModelSpec
from holdfast.planes.http1.heads import end_to_end
from holdfast.planes.http1.server import Exchange
from holdfast.planes.llm.asked import Asked
from holdfast.planes.llm.attempts import HEADER, Attempts
from holdfast.planes.llm.codec import Codec, Headers
from holdfast.planes.llm.formats import find
from holdfast.planes.llm.results import Results, Settled
from holdfast.planes.llm.routing import Router
from holdfast.planes.llm.talk import Talk
from holdfast.planes.llm.upstream import Query
from holdfast.protocols import Call, Trip

PLANE = "llm"


class Gateway:
    """What the model calls of all trials share."""

    def __init__(
        self, router: Router, models: Mapping[str, ModelSpec], *, on_calls: bool = True, on_results: bool = True
    ) -> None:
        self.router = router
        self.models = models
        self.on_calls = on_calls
        """Faults of the model act here; not where the agent's own model functions are wrapped."""
        self.on_results = on_results
        """Faults of tools act on their results here; not where the agent's own tools are wrapped."""

    def traffic(self, trip: Trip, elsewhere: Callable[[], Container[str]] = frozenset) -> Traffic:
        """The calls of one trial; `elsewhere` names the tools that other planes meet."""
        return Traffic(self, trip, elsewhere)


class Traffic:
    """The model calls of one trial."""

    def __init__(self, gateway: Gateway, trip: Trip, elsewhere: Callable[[], Container[str]]) -> None:
        self._gateway = gateway
        self._trip = trip
        self._attempts = Attempts()
        self._results = Results(trip, elsewhere, faulty=gateway.on_results)
        self._under_way: list[Talk] = []

    async def serve(self, exchange: Exchange, provider: str, path: str, base_url: str | None = None) -> None:
        """Answers one request; `path` is what follows the base URL."""
        body = await exchange.body()
        data = _decoded(body)
        route = find(exchange.head.method, path)
        codec = route.codec if route is not None and isinstance(data, Mapping) else None
        if codec is None:
            query = self._query(exchange, provider, path, body, data, None, None, base_url)
            await Talk(self._trip, exchange, query, self._gateway.models).pass_by(self._gateway.router, route)
            return
        await self._complete(exchange, provider, path, body, data, codec, base_url)

    def close(self) -> None:
        """The trial is over."""
        for talk in self._under_way:
            talk.leave()
        self._results.close()
        self._gateway.router.forget(self._trip.trial.id)

    async def _complete(
        self,
        exchange: Exchange,
        provider: str,
        path: str,
        body: bytes,
        data: Any,
        codec: Codec,
        base_url: str | None,
    ) -> None:
        trip = self._trip
        asked = codec.asked(path, data)
        key, retry = self._attempts.which(exchange.head.get(HEADER), body)
        changed = await self._settled(asked)
        if changed:
            texts = {name: settled.text or "" for name, settled in changed.items()}
            data = codec.with_results(data, texts, frozenset(n for n, s in changed.items() if s.failed))
            body, asked = msgspec.json.encode(data), codec.asked(path, data)
        call = Call(PLANE, asked.model, _arguments(asked), trip.count(PLANE, asked.model))
        query = self._query(exchange, provider, path, body, data, codec, asked, base_url)
        talk = Talk(trip, exchange, query, self._gateway.models, call=call, retry=retry)
        if self._gateway.on_calls and any(not other.gone for other in self._under_way):
            trip.overlapped()
        self._under_way.append(talk)
        try:
            await talk.through(self._gateway.router, pause, faulty=self._gateway.on_calls)
        finally:
            self._under_way.remove(talk)
        self._attempts.ended(key, retry, well=talk.well)
        if talk.completion is not None and not talk.completion.lacks:  # what never came asks for nothing
            self._results.declared(talk.completion.tool_calls)

    async def _settled(self, asked: Asked) -> dict[str, Settled]:
        """The tool results that the model is to read otherwise than the tools gave them."""
        try:
            return await self._results.settle(asked, pause)
        except HarnessError as broken:  # a bug of a fault: the trial is an error, and the agent goes on
            self._trip.broke(str(broken))
            return {}

    def _query(
        self,
        exchange: Exchange,
        provider: str,
        path: str,
        body: bytes,
        data: Any,
        codec: Codec | None,
        asked: Asked | None,
        base_url: str | None,
    ) -> Query:
        return Query(
            provider=provider,
            method=exchange.head.method,
            path=path,
            headers=_headers(exchange),
            body=body,
            trial=self._trip.trial.id,
            data=data,
            codec=codec,
            asked=asked,
            stream=asked is not None and asked.stream,
            base_url=base_url,
        )


async def pause(ms: float) -> None:
    await asyncio.sleep(ms / 1000)


def _arguments(asked: Asked) -> dict[str, Any]:
    """What `match` of a model's fault can ask about."""
    return {
        "model": asked.model,
        "prompt": asked.prompt,
        "stream": asked.stream,
        "tools": [t.name for t in asked.tools],
    }


def _headers(exchange: Exchange) -> Headers:
    """The agent's own, without those of the connection."""
    return tuple([(n.decode("latin-1"), v.decode("latin-1")) for n, v in end_to_end(exchange.head.headers)])


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body) if body else None
    except (msgspec.DecodeError, RecursionError):
        return None
