"""What stood in the files that an agent changed: read safely, and short."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
from frozen_workspace import Frozen

from holdfast.model.world import FileTexts
from holdfast.protocols.sandbox import FileChange, Sandbox
from holdfast.world.workspace import LONG, ROOM, ChangedTexts


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    (tmp_path / "layer").mkdir()
    (tmp_path / "now").mkdir()
    return tmp_path / "layer"


def texts(layer: Path | None, now: Path) -> ChangedTexts:
    return ChangedTexts(cast(Sandbox, Frozen(now)), layer)


def test_both_sides_of_a_change_are_kept(layer: Path) -> None:
    now = layer.with_name("now")
    (layer / "a").write_text("one\n")
    (now / "a").write_text("two\n")
    (now / "b").write_text("new ü\n")
    found = texts(layer, now)
    assert found.read_texts(FileChange("a", "modified", 4)) == FileTexts("one\n", "two\n")
    assert found.read_texts(FileChange("b", "created", 6)) == FileTexts(None, "new ü\n")
    assert found.read_texts(FileChange("a", "deleted")) == FileTexts("one\n", None)


def test_what_the_setup_may_have_changed_is_not_known(layer: Path) -> None:
    now = layer.with_name("now")
    (layer / "a").write_text("one\n")
    (now / "a").write_text("two\n")
    assert texts(None, now).read_texts(FileChange("a", "modified", 4)) is None
    assert texts(None, now).read_texts(FileChange("a", "created", 4)) == FileTexts(None, "two\n")


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe", b"x" * (LONG + 1)], ids=["zero bytes", "no UTF-8", "long"])
def test_what_is_not_a_short_text_is_left_out(layer: Path, data: bytes) -> None:
    now = layer.with_name("now")
    (now / "a").write_bytes(data)
    assert texts(layer, now).read_texts(FileChange("a", "created", len(data))) is None


def test_links_pipes_and_ways_out_are_not_read(layer: Path, tmp_path: Path) -> None:
    now, secret = layer.with_name("now"), tmp_path / "secret"
    secret.write_text("mine")
    for folder in (layer, now):
        (folder / "link").symlink_to(secret)
        (folder / "folder").symlink_to(tmp_path)
        (folder / "empty").mkdir()
    os.mkfifo(now / "pipe")
    found = texts(layer, now)
    for path in ("link", "pipe", "empty", "out/side", "gone", "../secret"):
        assert found.read_texts(FileChange(path, "modified", 4)) is None
    for path in ("link", "folder/secret", "../secret", "gone"):
        assert found.read_texts(FileChange(path, "deleted")) is None


def test_all_files_of_a_trial_together_have_a_bound(layer: Path) -> None:
    now = layer.with_name("now")
    (now / "a").write_text("x" * LONG)
    found = texts(layer, now)
    kept = [found.read_texts(FileChange("a", "created", LONG)) for _ in range(ROOM // LONG + 3)]
    assert [one is not None for one in kept] == [True] * (ROOM // LONG) + [False] * 3
