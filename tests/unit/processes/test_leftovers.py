"""What a trial leaves behind is ended; what cannot be ended is told."""

from __future__ import annotations

import asyncio

import pytest

from golden_words import Golden
from holdfast.processes import leftovers
from holdfast.processes.launch_host import EXITED, NOTICE
from holdfast.processes.launcher import Launcher
from holdfast.processes.program import KILLED, Program

NOBODY = 2**22 + 1
"""More than any process id that Linux gives."""


def test_orphans_that_survive_every_round_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "list_children", lambda: {NOBODY, NOBODY + 1})
    assert leftovers.end_orphans({NOBODY}) == {NOBODY + 1}
    assert leftovers.end_orphans({NOBODY, NOBODY + 1}) == set()


def test_marked_processes_that_survive_every_round_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "_list_processes", lambda: iter([NOBODY]))
    assert leftovers.end_marked("A", "b") == set()
    monkeypatch.setattr(leftovers, "_is_marked", lambda pid, mark: True)
    assert leftovers.end_marked("A", "b") == {NOBODY}


def test_a_program_is_reported_with_what_outlived_it(golden: Golden) -> None:
    async def main() -> None:
        launcher = Launcher()
        program = launcher._programs[1] = Program(None, launcher.listen)
        program.notes = (KILLED,)
        launcher._handle_notice(*NOTICE.unpack(NOTICE.pack(EXITED, 1, 0, 0, 2)))
        assert program.ended
        golden(program.notes)

    asyncio.run(main())
