"""Whether a run is being written: told from the kernel's table, or without it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.store import run_folders
from holdfast.store.run_folders import is_written
from holdfast.store.rundir import RunDir

HOLDER = """
import sys, time
from pathlib import Path
from holdfast.store.rundir import RunDir
RunDir(Path(sys.argv[1])).lock()
print("locked", flush=True)
time.sleep(60)
"""


@pytest.fixture(params=["the kernel's table", "no such table"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if request.param == "no such table":
        monkeypatch.setattr(run_folders, "LOCKS", tmp_path / "none")


def test_a_run_is_written_until_its_process_is_killed(tmp_path: Path, way: None) -> None:
    assert not is_written(tmp_path), "there is no lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        assert is_written(tmp_path)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close() if holder.stdout else None
    assert not is_written(tmp_path), "the file is still there, and nobody holds it"


def test_another_run_is_not_taken_for_it(tmp_path: Path, way: None) -> None:
    one, other = (RunDir(tmp_path / name) for name in ("0001", "0002"))
    for run in (one, other):
        run.path.mkdir()
        run.lock()
    other.unlock()
    assert (is_written(one.path), is_written(other.path)) == (True, False)
    one.unlock()


def test_the_table_has_only_exclusive_locks_of_that_file(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    about = (tmp_path / "lock").stat()
    device, inode = f"{about.st_dev >> 8 & 0xFFF:02x}:{about.st_dev & 0xFF:02x}", about.st_ino
    for line, held in (
        (f"1: FLOCK  ADVISORY  WRITE 7 {device}:{inode} 0 EOF", True),
        (f"1: FLOCK  ADVISORY  READ  7 {device}:{inode} 0 EOF", False),
        (f"1: POSIX  ADVISORY  WRITE 7 {device}:{inode} 0 EOF", False),
        (f"1: FLOCK  ADVISORY  WRITE 7 {device}:{inode}1 0 EOF", False),
        (f"1: -> FLOCK  ADVISORY  WRITE 7 {device}:{inode} 0 EOF", False),
        ("", False),
    ):
        assert run_folders._is_listed(line, about) is held, line
