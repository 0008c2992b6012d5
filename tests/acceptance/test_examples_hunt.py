"""examples/hunt: the story that its README tells is what happens."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from docs_pages import blocks, play

EXAMPLE = Path(__file__).parents[2] / "examples" / "hunt"


@pytest.mark.long  # a hunt of a few hundred trials, some of which wait
def test_the_story_is_what_happens(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "hunt", ignore=shutil.ignore_patterns(".*", "__pycache__"))
    shown = sum(len(block.commands) for block in blocks(EXAMPLE / "README.md") if block.language == "console")
    played = play(EXAMPLE / "README.md", folder, {})
    assert [f"{one.where}: {one.missing}\n{one.printed}" for one in played if one.missing is not None] == []
    assert len(played) == shown == 9
