"""Small values of the viewer: names, the page that opens, threads."""

from __future__ import annotations

import os
import threading
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from holdfast.web.address import is_run_id, is_trial_id, split_id
from holdfast.web.opened_page import open_page
from holdfast.web.viewer import DaemonWorkers


@pytest.mark.parametrize("id", ["0007", "0007/contract", "1", "123456789012", "0001/replay"])
def test_ids_of_runs(id: str) -> None:
    assert is_run_id(id)


@pytest.mark.parametrize(
    "id",
    ["", "..", "0007/", "/0007", "0007/..", "0007/other", "0007/contract/x", "٣", "1234567890123", "0007\n", "0x1"],
)
def test_what_is_no_id_of_a_run(id: str) -> None:
    assert not is_run_id(id)


def test_ids_of_trials() -> None:
    assert is_trial_id("7f3a2c91d044")
    assert not any(map(is_trial_id, ("", "..", "7F", "7f/3a", "7f.jsonl", "a" * 65, "7f\n")))


def test_a_path_begins_with_the_longest_id() -> None:
    assert split_id(["0007", "contract", "matrix"]) == ("0007/contract", ["matrix"])
    assert split_id(["0007", "matrix"]) == ("0007", ["matrix"])
    assert split_id(["x", "0007"]) == ("", ["x", "0007"])


def test_the_browser_gets_a_file_that_only_the_user_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("holdfast.web.opened_page._open", opened.append)
    url = 'http://127.0.0.1:1/secret/#/run/0007"><script>'
    with open_page(url, tmp_path):
        (page,) = tmp_path.rglob("*.html")
        assert page.stat().st_mode & 0o777 == 0o600
        assert page.parent.stat().st_mode & 0o777 == 0o700
        assert "<script>" not in page.read_text()
        assert "http://127.0.0.1:1/secret/#/run/0007&quot;" in page.read_text()
        assert opened == [page.as_uri()]
        assert "secret" not in opened[0]
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_viewer_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.web.opened_page._open", lambda address: None)
    for name, age in (("view-old", 7200), ("view-new", 60)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "open.html").touch()
        then = (tmp_path / name / "open.html").stat().st_mtime - age
        os.utime(tmp_path / name / "open.html", (then, then))
    with open_page("http://127.0.0.1:1/x/", tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["view-new"]


def test_workers_do_as_much_at_once_as_they_may() -> None:
    workers, both = DaemonWorkers(2), threading.Barrier(2)
    pair = [workers.submit(both.wait, 10) for _ in range(2)]
    assert sorted(one.result(10) for one in pair) == [0, 1]
    assert [workers.submit(lambda n=n: n * n).result(10) for n in range(20)] == [n * n for n in range(20)]
    assert isinstance(workers.submit(int, "x").exception(10), ValueError)


def test_workers_that_end_leave_what_waits_undone() -> None:
    workers, busy, over = DaemonWorkers(1), threading.Event(), threading.Event()
    first = workers.submit(lambda: (busy.set(), over.wait(10)))
    assert busy.wait(10)
    second = workers.submit(lambda: 1)
    assert not second.running()
    workers.shutdown()
    over.set()
    assert first.result(10)
    with pytest.raises(CancelledError):
        second.result(10)
