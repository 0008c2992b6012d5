"""Temporary folders: removed after use, and by the next run where a process was killed; never a live one's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from holdfast.processes import scratch

HOLDS = """
import sys, time
from holdfast.processes import scratch
print(scratch.make("planes"), flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def other(apart: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another process that holds a folder."""
    env = {**os.environ, "TMPDIR": str(apart)}
    process = subprocess.Popen([sys.executable, "-c", HOLDS], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    path = Path(process.stdout.readline().strip())
    yield process, path
    process.kill()
    process.communicate()


def gone_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_folder_is_its_owners_alone_and_gone_after_use() -> None:
    with scratch.open_folder("prompt") as path:
        assert path.stat().st_mode & 0o777 == 0o700
        assert path.name.startswith(f"holdfast-prompt-{os.getpid()}-")
        assert scratch.sweep() == []
        (path / "inner").mkdir()
    assert not path.exists()


def test_a_folder_of_a_live_process_stays_and_of_a_killed_one_is_swept(
    other: tuple[subprocess.Popen[str], Path],
) -> None:
    process, path = other
    assert scratch.sweep() == []
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert path.exists()
    assert scratch.sweep() == [path]
    assert not path.exists()


def test_a_folder_that_is_locked_stays_whatever_its_number_says(apart: Path) -> None:
    made = scratch.make("planes")
    elsewhere = apart / f"holdfast-planes-{gone_pid()}-abc"
    made.rename(elsewhere)
    assert scratch.sweep() == []
    os.close(scratch._held.pop(made))
    assert scratch.sweep() == [elsewhere]


def test_a_folder_without_a_lock_stays_while_it_may_be_in_the_making(apart: Path) -> None:
    young = apart / f"holdfast-planes-{gone_pid()}-abc"
    young.mkdir()
    assert scratch.sweep() == []
    os.utime(young, (1, 1))
    assert scratch.sweep() == [young]


@pytest.mark.parametrize("name", ["holdfast-notes", "holdfast-planes-x-abc", "holdfast-1-2", "other-planes-1-abc"])
def test_what_is_not_named_as_ours_stays(apart: Path, name: str) -> None:
    (apart / name).mkdir()
    os.utime(apart / name, (1, 1))
    assert scratch.sweep() == []


def test_a_link_with_such_a_name_is_not_followed(apart: Path) -> None:
    precious = apart / "precious"
    precious.mkdir()
    (apart / f"holdfast-planes-{gone_pid()}-abc").symlink_to(precious)
    assert scratch.sweep() == []
    assert precious.exists()
