"""A run that is being written, followed through its files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from web_kit import ViewerClient, make_project, viewing, wait_until

from golden_words import Golden
from holdfast.cli.main import run
from holdfast.report.page.cells import build_matrix
from holdfast.runner.outcome import load_run
from holdfast.store.rundir import RunDir, RunEnd
from holdfast.web.live_run import LiveRun

FILES = ("trials.jsonl", "observations-0.jsonl", "verdicts-1.jsonl")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("live") / "desk")


class Writing:
    """A run that is written line by line, as the run `0002` was."""

    def __init__(self, finished: Path, folder: Path) -> None:
        shutil.copytree(finished, folder)
        self.folder = folder
        self.run = RunDir(folder / ".holdfast" / "runs" / "0002")
        self._lines = {name: (self.run.path / name).read_bytes().splitlines(keepends=True) for name in FILES}
        self._ended = (self.run.path / "ended.json").read_bytes()
        for name in ("ended.json", "score.json"):
            (self.run.path / name).unlink()
        shutil.rmtree(folder / ".holdfast" / "history", ignore_errors=True)
        for name in FILES:
            (self.run.path / name).write_bytes(b"")
        self.run.lock()

    def write(self, name: str, count: int, torn: int = 0) -> None:
        """So many more lines of a file, and a part of the next."""
        lines = self._lines[name]
        with open(self.run.path / name, "ab") as file:
            file.write(b"".join(lines[:count]) + (lines[count][:torn] if torn else b""))
        self._lines[name] = lines[count:]
        if torn:
            self._lines[name][0] = self._lines[name][0][torn:]

    def rest(self) -> None:
        for name in FILES:
            self.write(name, len(self._lines[name]))

    def end(self) -> None:
        (self.run.path / "ended.json").write_bytes(self._ended)
        self.run.unlock()


@pytest.fixture
def writing(finished: Path, tmp_path: Path) -> Iterator[Writing]:
    found = Writing(finished, tmp_path / "desk")
    yield found
    found.run.unlock()


def live_of(writing: Writing) -> LiveRun:
    return LiveRun(writing.run, os.environ)


def told(live: LiveRun) -> Any:
    live.update()
    return live.build_progress()


def test_what_is_followed_comes_to_what_is_read_at_the_end(writing: Writing) -> None:
    live = live_of(writing)
    live.update()
    for _ in range(3):
        for name in FILES:
            writing.write(name, 1, torn=20)
        live.update()
    writing.rest()
    live.update()
    writing.end()
    with_all = load_run(writing.run, environ=os.environ)
    seen = live.build_outcome()
    assert build_matrix(seen.run) == build_matrix(with_all.run)
    assert seen.score.value == with_all.score.value
    assert seen.score.spent == with_all.score.spent
    assert told(live)["done"] == told(live)["total"] == with_all.score.trials


def test_a_trial_counts_when_it_is_seen_and_its_cell_when_it_is_judged(writing: Writing) -> None:
    live = live_of(writing)
    writing.write("trials.jsonl", 20)
    assert told(live)["done"] == 0
    observations = len(writing._lines["observations-0.jsonl"])
    writing.write("observations-0.jsonl", observations)
    assert told(live)["done"] == told(live)["total"]
    assert live.take_news().cells == []
    writing.rest()
    live.update()
    news = live.take_news()
    assert {(cell.invariant, cell.scenario): cell.outcome for cell in news.cells}[("cites", "down")] == "fail"
    assert news.trials[0]["outcome"] == "fail", "what did not pass comes first"
    assert (live.take_news().cells, live.take_news().trials) == ([], [])
    assert told(live)["failed"] == 2


def test_a_cell_that_is_half_done_says_what_is_to_come(writing: Writing, golden: Golden) -> None:
    live = live_of(writing)
    writing.write("trials.jsonl", 20)
    writing.write("observations-0.jsonl", 3)
    writing.write("verdicts-1.jsonl", 1)
    live.update()
    (cell,) = live.take_news().cells
    assert cell.outcome == "unproven"
    golden(cell.reason)


def test_lines_that_something_else_wrote_are_passed_over(writing: Writing) -> None:
    live = live_of(writing)
    for name in FILES:
        with open(writing.run.path / name, "ab") as file:
            file.write(b'{"trial":"no such","x":\xff}\nnot json\n{}\n')
    writing.rest()
    assert told(live)["done"] == told(live)["total"]


def test_a_file_that_is_put_back_is_read_again(writing: Writing) -> None:
    live = live_of(writing)
    writing.write("trials.jsonl", 20)
    writing.write("observations-0.jsonl", 3)
    live.update()
    writing.rest()
    path = writing.run.path / "observations-0.jsonl"
    beside = path.with_name("beside")
    beside.write_bytes(path.read_bytes())
    beside.replace(path)
    assert told(live)["done"] == told(live)["total"]
    assert live.build_outcome().score.value is not None


def test_a_trial_that_broke_and_is_run_again_counts_once(writing: Writing) -> None:
    live = live_of(writing)
    lines = writing._lines["observations-0.jsonl"]
    broken = {**json.loads(lines[1]), "error": "our side broke"}
    writing.write("trials.jsonl", 20)
    with open(writing.run.path / "observations-0.jsonl", "ab") as file:
        file.write(lines[0] + json.dumps(broken).encode() + b"\n")
    verdict = {**json.loads(writing._lines["verdicts-1.jsonl"][0]), "trial": broken["trial"], "outcome": "error"}
    with open(writing.run.path / "verdicts-1.jsonl", "ab") as file:
        file.write(json.dumps(verdict).encode() + b"\n")
    assert told(live)["done"] == 1
    writing.rest()
    found = told(live)
    assert found["done"] == found["total"]
    assert live.build_outcome().score.counts["error"] == 0


def test_calls_of_a_trial_under_way_are_shown(writing: Writing) -> None:
    live = live_of(writing)
    writing.write("trials.jsonl", 20)
    id = [json.loads(line)["id"] for line in (writing.run.path / "trials.jsonl").read_bytes().splitlines()][-1]
    traces = writing.run.path / "traces"
    traces.mkdir()
    call = {"ts": 0.1, "event_type": "tool_call", "tool": "search", "plane": "tool", "output": "found"}
    (traces / f"{id}.jsonl").write_text(json.dumps(call) + "\n" + '{"ts": 0.2, "ev')
    (under_way,) = told(live)["under_way"]
    assert under_way == {"trial": id, "scenario": under_way["scenario"], "calls": 1, "last_call": "tool search"}


def test_a_page_follows_the_run_until_it_ends(writing: Writing) -> None:
    with viewing(writing.folder) as client:
        assert client.get("runs")["runs"][0]["state"] == "running"
        with client.listening("?run=0002") as wait:
            assert wait("progress")["done"] == 0
            assert client.get("runs/0002/matrix")["cells"] == 0
            writing.rest()
            assert {cell["outcome"] for cell in wait("cells")["changed"]} == {"pass", "fail"}
            assert wait("trial")["outcome"] == "fail"
            half = client.get("runs/0002")
            assert (half["verdict"], half["reasons"], half["run"]["state"]) == ("", [], "running")
            assert client.get("runs/0002/matrix")["cells"] == 4
            _sees_a_trial(client)
            writing.end()
            assert wait("ended") == {"run": "0002"}
            found = client.get("runs/0002")
            assert (found["verdict"], found["run"]["state"]) == ("FAIL", "ended"), "what the page asks for then"
        wait_until(lambda: client.get("runs")["runs"][0]["state"] == "ended")


def test_what_is_still_to_come_is_no_trouble(
    writing: Writing, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    with viewing(writing.folder) as client:
        nothing = client.get("runs/0002/causes")
        assert (nothing["causes"], nothing["cells"], client.get("runs/0002")["resume"]) == ([], 0, "")
        writing.write("trials.jsonl", 20)
        writing.write("observations-0.jsonl", 3)
        writing.write("verdicts-1.jsonl", 1)
        assert client.get("runs/0002/causes")["causes"] == []
        cell = client.get("runs/0002/cell?rule=cites&column=down")["cell"]
        golden(cell["reason"])
        golden(cell["next"])
    with chdir(writing.folder):
        assert (run(("show", "0002")), run(("runs",))) == (0, 0)
    said = capsys.readouterr().out
    assert "RUNNING" in said
    assert "it is running" in said
    assert [word for word in ("INTERRUPTED", "--resume", "did not run", "killed") if word in said] == [], said
    writing.run.unlock()
    with chdir(writing.folder):
        assert (run(("show", "0002")), run(("runs",))) == (0, 0)
    said = capsys.readouterr().out
    assert "INTERRUPTED" in said
    assert " killed " in said


def test_the_list_is_told_that_a_run_has_ended(writing: Writing) -> None:
    with viewing(writing.folder) as client, client.listening() as wait:
        writing.rest()
        writing.end()
        assert client.get("runs")["runs"][0]["state"] in ("running", "ended"), "never killed"
        assert "0002" in wait("runs")["ids"]
        wait_until(lambda: client.get("runs")["runs"][0]["state"] == "ended")


def _sees_a_trial(client: ViewerClient) -> None:
    trial = client.get("runs/0002/cell?rule=cites&column=down")["trials"][0]["id"]
    assert client.get(f"runs/0002/trial/{trial}")["outcome"] == "fail"


def test_a_run_that_was_killed_is_called_so(writing: Writing, golden: Golden) -> None:
    with viewing(writing.folder) as client, client.listening("?run=0002") as wait:
        writing.write("trials.jsonl", 20)
        wait("progress")
        writing.run.unlock()  # as the kernel does
        assert wait("ended") == {"run": "0002"}
        row = client.get("runs")["runs"][0]
        assert row["state"] == "killed"
        golden(row["note"])
        assert client.get("runs/0002")["resume"].split("--resume ")[1].endswith(".holdfast/runs/0002")


def test_a_run_that_is_resumed_is_running(writing: Writing) -> None:
    ended = msgspec.json.decode(writing._ended, type=RunEnd)
    writing.write("trials.jsonl", 20)
    writing.write("observations-0.jsonl", 3)
    writing.run.write_end(replace(ended, complete=False, sealed={}))
    with viewing(writing.folder) as client:
        assert client.get("runs")["runs"][0]["state"] == "running"
        assert client.get("runs/0002")["verdict"] == ""
        writing.run.unlock()
        assert client.get("runs")["runs"][0]["state"] == "interrupted"


def test_looking_takes_no_lock(writing: Writing) -> None:
    with viewing(writing.folder) as client:
        client.get("runs/0002")
        writing.run.unlock()
        for _ in range(20):
            client.get("runs/0002/matrix")
            writing.run.lock()
            writing.run.unlock()
