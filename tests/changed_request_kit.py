"""Agents that are asked by changed requests, and servers that keep every byte of them."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from agent_http_servers import Handler, Plain, RawHandler, opened, raw_server, web_server
from holdfast.agents.http.changed_request import WireRequest, build_wire_request
from holdfast.agents.http.client import HttpClient
from holdfast.agents.http.request import build_request_form
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec
from holdfast.model.task import RequestChange, Task, Variation
from holdfast.mutate.changed_requests import RequestMutator
from holdfast.mutate.expand import REQUEST_MUTATORS
from holdfast.mutate.mutator import MadeMutation

PROMPT = "Where is my parcel?"
EVERY = [
    (mutator.kind, name)
    for mutator in REQUEST_MUTATORS.values()
    if isinstance(mutator, RequestMutator)
    for name in mutator.variants
]
"""Type and variant."""


def mutation(kind: str, variant: str, seed: int = 3) -> MadeMutation:
    """That variant of the type, for the prompt."""
    for n in range(40):
        made = REQUEST_MUTATORS[kind].mutate(PROMPT, n, Random(seed))
        if made is not None and made.name == variant:
            return made
    raise LookupError(variant)


def change_of(kind: str, variant: str, seed: int = 3) -> RequestChange:
    change = mutation(kind, variant, seed).request
    assert change is not None
    return change


def task_of(change: RequestChange, *turns: str) -> Task:
    variation = Variation(change.kind, PROMPT, change.variant, attack=True, request=change)
    return Task(turns or (PROMPT,), kind="mutation", variation=variation)


def expected(url: str, change: RequestChange, parameter: str = "input", **settings: Any) -> WireRequest:
    """What the agent at the URL is to be sent."""

    async def go() -> WireRequest:
        form = build_request_form(AgentSpec(endpoint=url, **settings))
        client = HttpClient(form.url, form.headers, timeout_ms=1_000, limit=1)
        return build_wire_request(change, form.url, client.head.lines, form.fill(PROMPT, PROMPT), "", parameter)

    return asyncio.run(go())


async def ask_changed(url: str, change: RequestChange, *turns: str, **settings: Any) -> Answer:
    async with opened(url, **settings) as agent:
        return await agent.run(task_of(change, *turns), Plain())


def changed_raw(handler: RawHandler, change: RequestChange, *turns: str, **settings: Any) -> Answer:
    """What a server that writes the bytes itself makes of the changed request."""

    async def go() -> Answer:
        async with raw_server(handler) as url:
            return await ask_changed(url, change, *turns, **settings)

    return asyncio.run(go())


def changed_web(handler: Handler, change: RequestChange, *turns: str, **settings: Any) -> Answer:
    async def go() -> Answer:
        async with web_server(handler) as url:
            return await ask_changed(url, change, *turns, **settings)

    return asyncio.run(go())
