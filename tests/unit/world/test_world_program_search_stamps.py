"""Programs that change during a run."""

from __future__ import annotations

from pathlib import Path

from holdfast.model.spec import AgentSpec
from holdfast.world.program_search import ProgramSearch, ProgramStamps


def test_a_program_that_is_another_in_the_end_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    (folder / "bot").symlink_to("one")
    search = ProgramSearch(f"{folder}:/usr/bin:/bin", tmp_path, tmp_path, tmp_path / "own")
    stamps = ProgramStamps(AgentSpec(type="command", command="env A=1 bot && sh ./run.sh; cat < x"), search)
    assert stamps.list_changed() == ()
    (folder / "bot").unlink()
    (folder / "bot").symlink_to("two")
    assert stamps.list_changed() == (str(folder / "bot"),)
    (folder / "bot").unlink()
    assert stamps.list_changed() == (str(folder / "bot"),)
