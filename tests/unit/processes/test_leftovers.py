"""What a trial leaves behind is ended; what cannot be ended is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.processes import leftovers
from holdfast.processes.launch_host import EXITED, LOST, NOTICE, STARTED
from holdfast.processes.launcher import Launcher
from holdfast.processes.program import KILLED, Program
from refused import refused

NOBODY = 2**22 + 1
"""More than any process id that Linux gives."""


def test_orphans_that_survive_every_round_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "list_children", lambda: {NOBODY, NOBODY + 1})
    assert leftovers.end_orphans({NOBODY}) == {NOBODY + 1}
    assert leftovers.end_orphans({NOBODY, NOBODY + 1}) == set()


def test_marked_processes_that_survive_every_round_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert leftovers.end_marked("HOLDFAST_NOWHERE", "b") == set()
    monkeypatch.setattr(leftovers, "_find_marked", lambda mark: iter([NOBODY]))
    assert leftovers.end_marked("A", "b") == {NOBODY}


async def test_a_program_is_reported_with_what_outlived_it(golden: Golden) -> None:
    launcher = Launcher()
    program = launcher._programs[1] = Program(None, launcher.listen)
    program.notes = (KILLED,)
    launcher._handle_notice(*NOTICE.unpack(NOTICE.pack(EXITED, 1, 0, 0, 2)))
    assert program.ended
    golden(program.notes)


# A keeper that dies: whose doing it was depends on whether the program had started.


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
