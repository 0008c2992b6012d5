"""The loop of a coroutine agent ends what was left in it, as asyncio.run would."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from holdfast.agents.event_loop import EventLoop

ended: list[str] = []


async def _leaves_nothing() -> None:
    await asyncio.sleep(0)


async def _leaves_a_task() -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("task")

    kept.append(asyncio.create_task(work()))
    await asyncio.sleep(0)


async def _leaves_a_generator() -> None:
    async def pieces() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            ended.append("generator")

    kept.append(made := pieces())
    await anext(made)


async def _leaves_a_thread() -> None:
    kept.append(threading.Event())
    waited = asyncio.get_running_loop().run_in_executor(None, lambda: (kept[-1].wait(5), ended.append("thread")))
    await asyncio.sleep(0)
    kept[-1].set()
    waited.add_done_callback(lambda _: None)


kept: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_left_before() -> None:
    kept.clear()
    ended.clear()


@pytest.mark.parametrize(
    ("leave", "what"),
    [
        (_leaves_nothing, []),
        (_leaves_a_task, ["task"]),
        (_leaves_a_generator, ["generator"]),
        (_leaves_a_thread, ["thread"]),
    ],
)
def test_what_is_left_is_ended(leave: Callable[[], Coroutine[Any, Any, None]], what: list[str]) -> None:
    loop = EventLoop()
    loop.run(leave())
    assert ended in ([], what)
    loop.close()
    assert ended == what


def test_one_loop_serves_all_turns() -> None:
    async def which() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    loop = EventLoop()
    first = loop.run(which())
    assert loop.run(which()) is first
    loop.close()
    assert first.is_closed()
