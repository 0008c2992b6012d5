"""Signals end the work once, and not what stores it."""

import asyncio
import os
import signal
import threading

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
            told: list[object] = [await interrupts.run_to_end(work())]
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
            return await interrupts.run_to_end(asyncio.sleep(0))

    assert asyncio.run(use()) is True


def test_another_thread_can_end_the_work_and_no_signal_is_heeded_outside_the_main_one() -> None:
    interrupts, working, told = Interrupts(), threading.Event(), []

    async def work() -> None:
        working.set()
        await asyncio.sleep(60)

    async def use() -> None:
        with interrupts:
            told.append(await interrupts.run_to_end(work()))

    thread = threading.Thread(target=lambda: asyncio.run(use()))
    thread.start()
    assert working.wait(30)
    interrupts.stop()
    thread.join(30)
    assert told == [False]


def test_work_that_was_stopped_before_it_began_does_not_begin() -> None:
    begun = []

    async def work() -> None:
        await asyncio.sleep(0)
        begun.append(True)

    async def use() -> bool:
        interrupts = Interrupts()
        interrupts.stop()
        with interrupts:
            return await interrupts.run_to_end(work())

    assert asyncio.run(use()) is False
    assert begun == []
