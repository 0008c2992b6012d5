"""Faults of the clock, on a world that only has one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from golden_words import Golden
from holdfast.errors import HarnessError
from holdfast.faults.world.frozen import Frozen
from holdfast.faults.world.jump import Jump
from holdfast.faults.world.skew import Skew
from holdfast.protocols.fault import FaultContext

NOW = datetime(2026, 1, 30, 22, 30, tzinfo=UTC)


class Clock:
    """A clock that stands at NOW until it is set."""

    def __init__(self) -> None:
        self.set: list[tuple[str, bool]] = []

    def time(self) -> float:
        return NOW.timestamp()

    async def set_clock(self, now: float, *, frozen: bool = False) -> None:
        self.set.append((datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S"), frozen))


def disturbed(fault: Any, world: Any) -> str:
    async def sleep(ms: float) -> None:
        raise AssertionError("a fault of the clock never waits")

    return asyncio.run(fault.disturb(world, FaultContext(Random(0), sleep, 1)))


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        (Skew(), ("2026-01-30 22:35:00", False)),
        (Skew(offset_s=-60), ("2026-01-30 22:29:00", False)),
        (Frozen(), ("2026-01-30 22:30:00", True)),
        (Jump(), ("2026-01-30 23:59:59", False)),
        (Jump(to="month_end", zone="Europe/Berlin", before_s=5), ("2026-01-31 22:59:55", False)),
        (Jump(to="dst", zone="Europe/Berlin", before_s=0), ("2026-03-29 01:00:00", False)),
    ],
)
def test_the_clock_shows_what_the_fault_says(fault: Any, shown: tuple[str, bool], golden: Golden) -> None:
    clock = Clock()
    golden(disturbed(fault, clock))
    assert clock.set == [shown]


def test_a_clock_that_is_right_is_not_changed() -> None:
    clock = Clock()
    assert disturbed(Skew(offset_s=0), clock) == ""
    assert clock.set == []


def test_an_impossible_clock_change_is_a_harness_error() -> None:
    with pytest.raises(HarnessError) as raised:
        disturbed(Jump(to="dst", zone="Asia/Tokyo"), Clock())
    assert raised.value.code == "fault-impossible"
    with pytest.raises(HarnessError) as raised:
        disturbed(Frozen(), object())
    assert raised.value.code == "clock-unavailable"
