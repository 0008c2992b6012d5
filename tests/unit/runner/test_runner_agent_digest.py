"""The digest of an agent: whatever its command names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.runner import job
from holdfast.runner.job import file_digest


def test_another_content_is_another_digest(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    first = file_digest(file)
    os.utime(file, (1, 1))
    assert file_digest(file) == first
    file.write_text("two")
    assert file_digest(file) != first


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "big"
    with file.open("wb") as made:
        made.truncate(job.LARGE + 1)
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("it was read"))
    os.utime(file, (1, 1))
    first = file_digest(file)
    os.utime(file, (2, 2))
    assert file_digest(file) != first


def test_what_cannot_be_read_stops_nothing(tmp_path: Path) -> None:
    assert file_digest(tmp_path / "gone").startswith(b"unreadable: ")
    assert file_digest(tmp_path).startswith(b"unreadable: ")
