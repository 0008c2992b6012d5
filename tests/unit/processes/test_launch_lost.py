"""A keeper that dies: whose doing it was depends on whether the program had started."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.processes.launch_host import LOST, STARTED
from holdfast.processes.launcher import Launcher
from holdfast.processes.program import Program
from refused import refused

Notice = tuple[int, int, int]
"""What is told, a value, and how many processes survived."""


def started(monkeypatch: pytest.MonkeyPatch, *notices: Notice) -> Program:
    """A start of which the launch host tells so much."""

    async def hand_over(self: Launcher, ticket: int, fds: Sequence[int]) -> None:
        for what, value, left in notices:
            self._handle_notice(what, ticket, value, 0.0, left)

    async def go() -> Program:
        launcher = Launcher()
        try:
            return await launcher.start(["/bin/true"], {}, Path("/"), (0, 1, 2))
        finally:
            await launcher.close()

    monkeypatch.setattr(Launcher, "_send_order", hand_over)
    return asyncio.run(go())


def test_a_keeper_that_dies_before_it_started_its_program_is_our_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("agent-lost"):
        started(monkeypatch, (LOST, 0, 0))


@pytest.mark.parametrize("notices", [[(LOST, 0, 1)], [(STARTED, 2**22 + 1, 2**22 + 2), (LOST, 0, 0)]])
def test_one_that_the_program_outlived_or_ended_is_the_programs_doing(
    monkeypatch: pytest.MonkeyPatch, notices: list[Notice]
) -> None:
    assert not started(monkeypatch, *notices).lost
