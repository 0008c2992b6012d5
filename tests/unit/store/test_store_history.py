"""The history is made from the run directories, whatever happened to its rows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.folders import HISTORY
from holdfast.store.history import History
from holdfast.store.past_run import PastCell, PastRun
from holdfast.store.rundir import RunDir

KIT = """
import sys
from pathlib import Path
from holdfast.store.history import History
from holdfast.store.past_run import PastCell, PastRun

def read(run):
    return PastRun(run.id, "contract", score=50.0, cells=(PastCell("r", "s", "pass", passes=1),))

history = History(Path(sys.argv[1]), read)
history.update()
print(len(history.read_runs(cells_of=None)))
"""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / ".holdfast" / "runs"


def add(runs: Path, *ids: str) -> None:
    for id in ids:
        (runs / id).mkdir(parents=True)
        (runs / id / "run.json").write_text("{}")


class Reader:
    """Reads runs, and knows which."""

    def __init__(self, **known: object) -> None:
        self.read: list[str] = []
        self._known = known

    def __call__(self, run: RunDir) -> PastRun:
        self.read.append(run.id)
        return PastRun(run.id, **{"part": "contract", **self._known})  # type: ignore[arg-type]


def open_history(runs: Path, read: Reader) -> History:
    history = History(runs, read)
    history.update()
    return history


def ids(runs: Path, read: Reader) -> list[str]:
    return [run.id for run in open_history(runs, read).read_runs()]


def test_every_run_is_read_once_and_the_newest_comes_first(runs: Path) -> None:
    add(runs, "0002", "10000", "0009")
    read = Reader()
    assert ids(runs, read) == ["10000", "0009", "0002"]
    add(runs, "10001")
    assert ids(runs, read) == ["10001", "10000", "0009", "0002"]
    assert sorted(read.read) == ["0002", "0009", "10000", "10001"]


def test_a_run_that_changed_is_read_again(runs: Path) -> None:
    add(runs, "0001", "0002")
    read = Reader()
    ids(runs, read)
    (runs / "0001" / "ended.json").write_text("{}")
    ids(runs, read)
    assert read.read.count("0001") == 2
    assert read.read.count("0002") == 1


def test_a_run_that_is_gone_is_gone_from_the_history_too(runs: Path) -> None:
    add(runs, "0001", "0002")
    read = Reader(cells=(PastCell("r", "s", "pass"),))
    ids(runs, read)
    shutil.rmtree(runs / "0001")
    assert ids(runs, read) == ["0002"]
    assert os.listdir(runs.parent / HISTORY) == ["0002.json"]


def test_parts_are_runs_of_their_own(runs: Path) -> None:
    add(runs, "0007", "0007/parts/contract", "0007/parts/replay")
    assert sorted(ids(runs, Reader())) == ["0007", "0007/contract", "0007/replay"]


def test_a_part_is_read_again_once_the_overall_score_is_there(runs: Path) -> None:
    add(runs, "0007", "0007/parts/contract")
    read = Reader()
    ids(runs, read)
    (runs / "0007" / "overall.json").write_text("{}")
    ids(runs, read)
    assert read.read.count("0007/contract") == 2


def test_what_was_put_in_comes_out(runs: Path) -> None:
    add(runs, "0003")
    cell = PastCell("r", "s [a=1]", "unproven", critical=True, passes=1, fails=2, errors=3, unproven=4)
    known = {
        "score": 62.5,
        "exit_code": 1,
        "seed": 2**63 - 1,
        "counts": {"pass": 3},
        "critical_failed": ("r in s",),
        "whole": True,
        "cells": (cell,),
    }
    for _ in range(2):  # from the run, then from its row
        history = open_history(runs, Reader(**known))
        assert history.read_runs(cells_of=["0003", "0004"]) == [PastRun("0003", "contract", **known)]  # type: ignore[arg-type]


def test_a_name_that_is_not_an_utf_8_is_kept_as_well_as_can_be(runs: Path) -> None:
    add(runs, "0001")
    (runs / "0001" / "\udcff").write_text("")
    history = open_history(runs, Reader(spec="/a/\udcff.yaml", note="\udcff"))
    assert [run.spec for run in history.read_runs()] == ["/a/?.yaml"]


def test_a_project_without_runs_has_an_empty_history_and_no_file(runs: Path) -> None:
    assert ids(runs, Reader()) == []
    assert not runs.parent.exists()


@pytest.mark.parametrize(
    "damage",
    [b"text", b"", b"{}", b"[" * 100_000, *(b'{"stamp": "", "run": {"id": "%b"}}' % id for id in (b"x", b"0002"))],
)
def test_a_damaged_row_is_made_again(runs: Path, damage: bytes) -> None:
    add(runs, "0001", "0002")
    before = ids(runs, Reader())
    for name in ("0001.json", "x.json"):
        (runs.parent / HISTORY / name).write_bytes(damage)
    read = Reader()
    assert ids(runs, read) == before
    assert read.read == ["0001"]
    assert ids(runs, read) == before
    assert read.read == ["0001"]


def test_a_pipe_in_the_place_of_a_row_does_not_block(runs: Path) -> None:
    add(runs, "0001")
    (runs.parent / HISTORY).mkdir()
    os.mkfifo(runs.parent / HISTORY / "0001.json")
    assert ids(runs, Reader()) == ["0001"]


def test_cells_whose_row_was_removed_since_are_read_again(runs: Path) -> None:
    add(runs, "0001")
    cell = PastCell("r", "s", "pass")
    history = open_history(runs, Reader(cells=(cell,)))
    shutil.rmtree(runs.parent / HISTORY)
    assert history.read_runs(cells_of=["0001"])[0].cells == (cell,)


def test_where_no_row_can_be_written_the_history_is_in_memory(runs: Path) -> None:
    add(runs, "0001")
    (runs.parent / HISTORY).write_text("")
    cell = PastCell("r", "s", "pass")
    (run,) = open_history(runs, Reader(cells=(cell,))).read_runs(cells_of=None)
    assert (run.id, run.cells) == ("0001", (cell,))


@pytest.mark.processes
def test_several_processes_may_update_it_concurrently(runs: Path) -> None:
    add(runs, *(f"{n:04d}" for n in range(1, 120)))
    command = [sys.executable, "-c", KIT, str(runs)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    ended = [(process.communicate(timeout=60), process.returncode) for process in started]
    assert [(out, code) for (out, _), code in ended] == [(b"119\n", 0)] * 4, ended
    read = Reader()
    assert len(ids(runs, read)) == 119
    assert read.read == []


def test_only_the_user_may_read_it(runs: Path) -> None:
    add(runs, "0001")
    ids(runs, Reader())
    assert os.stat(runs.parent / HISTORY).st_mode & 0o077 == 0


def test_a_killed_reader_leaves_the_rows_that_it_made(runs: Path) -> None:
    add(runs, *(f"{n:04d}" for n in range(1, 61)))
    kill = "    if run.id == '0010':\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    killed = "import os, signal\n" + KIT.replace("def read(run):\n", f"def read(run):\n{kill}")
    done = subprocess.run([sys.executable, "-c", killed, str(runs)], capture_output=True)
    assert done.returncode == -9
    read = Reader()
    assert len(ids(runs, read)) == 60
    assert len(read.read) == 10
