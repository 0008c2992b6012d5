"""One thing that fails to close keeps no other open."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.processes.program import await_all, cancel_and_wait


async def test_every_close_runs_and_the_first_failure_is_reported() -> None:
    ended = []

    async def close(name: str, failure: Exception | None = None) -> str:
        await asyncio.sleep(0)
        ended.append(name)
        if failure is not None:
            raise failure
        return name

    with pytest.raises(OSError, match="first"):
        await await_all([close("a", OSError("first")), close("b", ValueError("second")), close("c")])
    assert await await_all([close("d"), close("e")]) == ["d", "e"]
    assert ended == ["a", "b", "c", "d", "e"]


async def test_who_stops_a_task_and_is_stopped_meanwhile_is_told_so() -> None:
    async def slow_to_end() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)

    task = asyncio.create_task(slow_to_end())
    await asyncio.sleep(0)
    stopping = asyncio.create_task(cancel_and_wait(task))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await asyncio.wait({task})


async def test_a_task_that_failed_before_it_was_stopped_says_how() -> None:
    async def fails() -> None:
        raise ValueError("broken")

    task = asyncio.create_task(fails())
    await asyncio.wait({task})
    with pytest.raises(ValueError, match="broken"):
        await cancel_and_wait(task)
    waiting = asyncio.create_task(asyncio.sleep(60))
    await cancel_and_wait(waiting)
    assert waiting.cancelled()
