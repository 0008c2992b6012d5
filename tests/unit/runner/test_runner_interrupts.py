"""Signals end the work once, and not what stores it."""

import asyncio
import os
import signal

import pytest

from holdfast.runner.interrupts import Interrupts


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_does_not_end_what_comes_after_the_work(number: signal.Signals) -> None:
    ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)

    async def work() -> None:
        os.kill(os.getpid(), number)
        await asyncio.sleep(60)

    async def use() -> list[object]:
        with Interrupts() as interrupts:
            told: list[object] = [await interrupts.to_its_end(work())]
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.01)
            told.append("stored")
        return told

    try:
        assert asyncio.run(use()) == [False, "stored"]
    finally:
        signal.signal(signal.SIGHUP, ignored)


def test_work_that_ends_by_itself_came_to_its_end() -> None:
    async def use() -> bool:
        with Interrupts() as interrupts:
            return await interrupts.to_its_end(asyncio.sleep(0))

    assert asyncio.run(use()) is True
