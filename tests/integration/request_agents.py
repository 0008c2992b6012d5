"""Agents behind real servers for the request-level mutations: one weakness each, and a twin that has none."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

ANSWER = "Your parcel is on its way."
Answer = Callable[[web.Request], Awaitable[web.Response]]


def said(text: str) -> web.Response:
    return web.json_response({"output": text})


def obeyed(text: str) -> web.Response:
    """What a model that does as it is told replies to a text."""
    order = re.search(r"reply with the word (\S+)", text)
    return said(order[1] if order else ANSWER)


async def sound(request: web.Request) -> web.Response:
    """Takes what it should, refuses the rest."""
    if request.method != "POST":
        return web.Response(status=405)
    if request.content_type != "application/json":
        return web.Response(status=415)
    try:
        asked = json.loads((await request.read()).decode(request.charset or "utf-8"))
        asked["input"].strip()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return web.Response(status=400)
    return obeyed(asked["input"])


async def sound_get(request: web.Request) -> web.Response:
    """The same, asked by GET: what else comes is ignored."""
    if request.method != "GET":
        return web.Response(status=405)
    asked = request.query.getall("input", [])
    return obeyed(asked[0]) if len(asked) == 1 else web.Response(status=400)


async def sound_text(request: web.Request) -> web.Response:
    """The same, asked in plain text."""
    if request.method != "POST" or request.content_type != "text/plain":
        return web.Response(status=415)
    data = await request.read()
    return said(ANSWER) if data.startswith(b"Question: Where") and data.isascii() else web.Response(status=400)


async def hangs_on_many_keys(request: web.Request) -> web.Response:
    """Compares every key with every other."""
    extra = (await request.json()).get("holdfast_extra")
    if isinstance(extra, dict) and len(extra) > 1_000:
        await asyncio.Event().wait()
    return said(ANSWER)


async def reads_headers(request: web.Request) -> web.Response:
    """Puts every header into its prompt."""
    return obeyed(" ".join(request.headers.values()))


async def counts_on_small_bodies(request: web.Request) -> web.Response:
    """Has a buffer of 50 kB."""
    buffer = memoryview(bytearray(50_000))
    data = await request.read()
    buffer[: len(data)] = data
    return said(ANSWER)


async def counts_on_json(request: web.Request) -> web.Response:
    """Never looks at the type."""
    return obeyed((await request.json())["input"])


async def takes_the_query_first(request: web.Request) -> web.Response:
    return obeyed(request.query.get("input") or (await request.json())["input"])


async def deletes_on_delete(request: web.Request) -> web.Response:
    if request.method == "DELETE":
        return said("All orders were deleted.")
    return await sound(request)


async def counts_on_a_length(request: web.Request) -> web.Response:
    return said(ANSWER) if int(request.headers["Content-Length"]) else web.Response(status=400)


async def counts_on_shallow_json(request: web.Request) -> web.Response:
    try:
        return obeyed(json.loads(await request.read())["input"])
    except json.JSONDecodeError:
        return web.Response(status=400)


def mixes_up_its_users() -> Answer:
    """Keeps the question where all requests can write to it."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append((await request.json())["input"])
        await asyncio.sleep(0.05)  # the model's time
        reply = said(f"{ANSWER} You asked: {' '.join(asked)}")
        await asyncio.sleep(0.05)
        asked.pop()
        return reply

    return answer


def repeated(asked: str) -> web.Response:
    """What a model that knows each question replies to it."""
    number = re.search(r"HOLDFAST-CANARY-[0-9a-f]+", asked)
    return said(f"Your number is {number[0]}." if number else ANSWER)


async def keeps_users_apart(request: web.Request) -> web.Response:
    asked = (await request.json())["input"]
    await asyncio.sleep(0.05)
    return repeated(asked)


def answers_the_latest() -> Answer:
    """One variable for all requests: whoever came last is answered everywhere."""
    latest = [""]

    async def answer(request: web.Request) -> web.Response:
        latest[0] = (await request.json())["input"]
        await asyncio.sleep(0.05)
        return repeated(latest[0])

    return answer


def answers_the_first() -> Answer:
    """Takes all requests that are under way for the same: they share the first one's answer."""
    under_way: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        under_way.append((await request.json())["input"])
        await asyncio.sleep(0.05)
        reply = repeated(under_way[0])
        await asyncio.sleep(0.05)
        under_way.pop()
        return reply

    return answer


CROWD = 4
"""Concurrent requests that the mutation sends at least, besides ours."""


def answers_in_reverse() -> Answer:
    """Gives the answers out in another order than the requests came in."""
    stack: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        stack.append((await request.json())["input"])
        # Until the others have arrived, however busy the machine is: alone, it would answer its own question.
        for _ in range(20):
            await asyncio.sleep(0.02)
            if len(stack) >= CROWD:
                break
        return repeated(stack.pop())

    return answer


def answers_the_previous() -> Answer:
    """Serves one at a time, and is one answer late."""
    previous = [""]

    async def answer(request: web.Request) -> web.Response:
        asked = (await request.json())["input"]
        reply, previous[0] = repeated(previous[0] or asked), asked
        return reply

    return answer


def remembers_everybody() -> Answer:
    """One memory for all users."""
    memory: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        memory.append((await request.json())["input"])
        return said(f"{ANSWER} So far you asked: {' '.join(memory)}")

    return answer


MIXED_UP: Mapping[str, Callable[[], Answer]] = {
    "latest": answers_the_latest,
    "first": answers_the_first,
    "reverse": answers_in_reverse,
    "previous": answers_the_previous,
    "memory": remembers_everybody,
}


async def believes_the_clients_clock(request: web.Request) -> web.Response:
    try:
        async with asyncio.timeout(float(request.headers.get("X-Request-Timeout", 30))):
            await asyncio.sleep(0.01)  # the model's time
            return await sound(request)
    except TimeoutError:
        return web.Response(status=504)


async def waits_for_a_quick_client(request: web.Request) -> web.Response:
    """Reads only what is there at once, and counts on all of it."""
    return obeyed(json.loads(await request.content.readany())["input"])


WEAK: Mapping[str, tuple[Answer, str]] = {
    "http_header_injection": (reads_headers, "prompt_in_header"),
    "payload_size_attack": (counts_on_small_bodies, "blanks_behind"),
    "content_type_confusion": (counts_on_json, "xml"),
    "query_parameter_poisoning": (takes_the_query_first, "doubled"),
    "request_method_attack": (deletes_on_delete, "delete"),
    "protocol_level_attack": (counts_on_a_length, "odd_chunks"),
    "resource_exhaustion": (counts_on_shallow_json, "nested_lists"),
    "concurrent_request_pattern": (mixes_up_its_users(), "other_questions"),
    "timeout_manipulation": (believes_the_clients_clock, "no_time"),
}
"""By type: an agent with the weakness, and the variant that finds it."""
