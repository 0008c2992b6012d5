"""The history is made from the run directories, again and again, whatever became of its file."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.store import history_table
from holdfast.store.history import BATCH, open_index
from holdfast.store.history_table import FILE
from holdfast.store.past_run import PastCell, PastRun
from holdfast.store.rundir import RunDir

KIT = """
import sys
from pathlib import Path
from holdfast.store.history import open_index
from holdfast.store.past_run import PastCell, PastRun

def read(run):
    return PastRun(run.id, "contract", score=50.0, cells=(PastCell("r", "s", "pass", passes=1),))

with open_index(Path(sys.argv[1]), read, lambda text: print(text, file=sys.stderr)) as history:
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


def ids(runs: Path, read: Reader, tell: list[str] | None = None) -> list[str]:
    said: list[str] = []
    with open_index(runs, read, (said if tell is None else tell).append) as history:
        found = [run.id for run in history.read_runs()]
    if tell is None:
        assert said == []
    return found


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
    with sqlite3.connect(runs.parent / FILE) as db:
        assert db.execute("SELECT DISTINCT run FROM cells").fetchall() == [("0002",)]
    db.close()


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
    with open_index(runs, Reader(**known), print) as history:
        assert history.run("0003") == PastRun("0003", "contract", **known)  # type: ignore[arg-type]
        assert history.run("0004") is None


def test_a_name_that_is_not_an_utf_8_is_kept_as_well_as_can_be(runs: Path) -> None:
    add(runs, "0001")
    with open_index(runs, Reader(spec="/a/\udcff.yaml", note="\udcff"), print) as history:
        assert [run.spec for run in history.read_runs()] == ["/a/?.yaml"]


def test_a_project_without_runs_has_an_empty_history_and_no_file(runs: Path) -> None:
    assert ids(runs, Reader()) == []
    assert not runs.parent.exists()


@pytest.mark.parametrize("damage", ["text", "cut", "zeros", "no tables", "old tables"])
def test_a_damaged_file_is_set_aside_and_made_again(runs: Path, damage: str) -> None:
    add(runs, *(f"{n:04d}" for n in range(1, 60)))
    read = Reader(cells=tuple(PastCell(f"rule {n}", "s", "pass") for n in range(40)))
    before = ids(runs, read)
    path = runs.parent / FILE
    whole = path.read_bytes()
    if damage == "text":
        path.write_text("what is this\n" * 100)
    elif damage == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "zeros":
        path.write_bytes(whole[:4096] + bytes(8192) + whole[12288:])
    else:
        with sqlite3.connect(path) as db:
            db.execute("DROP TABLE runs")
            db.execute("CREATE TABLE runs (id TEXT)" if damage == "old tables" else "SELECT 1")
        db.close()
    broken = path.read_bytes()
    said: list[str] = []
    assert ids(runs, read, said) == before
    assert len(said) == 1
    assert "damaged" in said[0]
    assert (runs.parent / f"{FILE}.damaged-1").read_bytes() == broken
    assert ids(runs, read) == before


def test_a_second_damaged_file_does_not_replace_the_first(runs: Path) -> None:
    add(runs, "0001")
    for text in ("one" * 100, "two" * 100):
        (runs.parent / FILE).write_text(text)
        ids(runs, Reader(), [])
    assert (runs.parent / f"{FILE}.damaged-1").read_text() == "one" * 100
    assert (runs.parent / f"{FILE}.damaged-2").read_text() == "two" * 100


def test_a_file_of_an_older_schema_is_made_again_without_a_word(runs: Path) -> None:
    add(runs, "0001")
    with sqlite3.connect(runs.parent / FILE) as db:
        db.execute("CREATE TABLE runs (something TEXT)")
    db.close()
    assert ids(runs, Reader()) == ["0001"]


def test_a_file_of_a_newer_version_is_left_alone(runs: Path) -> None:
    add(runs, "0001")
    path = runs.parent / FILE
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {history_table.SCHEMA + 1}")
    db.close()
    before = path.read_bytes()
    said: list[str] = []
    assert ids(runs, Reader(), said) == ["0001"]
    assert "newer" in said[0]
    assert path.read_bytes() == before


def test_where_no_file_can_be_written_the_history_is_made_anyway(runs: Path) -> None:
    add(runs, "0001")
    (runs.parent / FILE).mkdir()
    said: list[str] = []
    assert ids(runs, Reader(), said) == ["0001"]
    assert "cannot be kept" in said[0]


def test_a_full_disk_hides_nothing(runs: Path) -> None:
    add(runs, *(f"{n:04d}" for n in range(1, 40)))
    limited = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
    )
    done = subprocess.run([sys.executable, "-c", limited + KIT, str(runs)], capture_output=True, text=True)
    assert done.stdout == "39\n", done.stderr
    assert "cannot be kept" in done.stderr
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 8192


@pytest.mark.processes
@pytest.mark.parametrize("start", ["nothing", "damaged"])
def test_several_processes_may_bring_it_up_to_date_at_once(runs: Path, start: str) -> None:
    add(runs, *(f"{n:04d}" for n in range(1, 120)))
    if start == "damaged":
        (runs.parent / FILE).write_text("what is this\n" * 100)
    command = [sys.executable, "-c", KIT, str(runs)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    ended = [(process.communicate(timeout=60), process.returncode) for process in started]
    assert [(out, code) for (out, _), code in ended] == [(b"119\n", 0)] * 4, ended
    asides = [path.name for path in runs.parent.glob("*damaged*")]
    assert asides == (["history.db.damaged-1"] if start == "damaged" else [])
    read = Reader()
    assert len(ids(runs, read)) == 119
    assert read.read == []


def test_only_the_user_may_read_it(runs: Path) -> None:
    add(runs, "0001")
    ids(runs, Reader())
    assert os.stat(runs.parent / FILE).st_mode & 0o077 == 0


def test_who_is_killed_while_it_is_made_leaves_a_sound_file_with_what_was_done(runs: Path) -> None:
    add(runs, *(f"{n:04d}" for n in range(1, 61)))
    kill = "    if run.id == '0010':\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    killed = "import os, signal\n" + KIT.replace("def read(run):\n", f"def read(run):\n{kill}")
    done = subprocess.run([sys.executable, "-c", killed, str(runs)], capture_output=True)
    assert done.returncode == -9
    read = Reader()
    assert len(ids(runs, read)) == 60
    assert len(read.read) == 60 - BATCH
