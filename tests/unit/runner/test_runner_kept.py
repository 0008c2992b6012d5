"""Which worlds stay: those of trials in which something went wrong."""

from pathlib import Path

import pytest

from holdfast.model.observation import ForbiddenResult, Observation
from holdfast.model.verdict import Verdict
from holdfast.runner.kept import KeptWorlds
from holdfast.store.rundir import RunDir

KEPT = Path(".holdfast/kept")


def verdict(outcome):
    return Verdict("abc", "rule", outcome, 0.0, "because")


WELL = Observation("abc")
CASES = [
    (WELL, ["pass", "unproven", "n/a"], False),
    (WELL, ["pass", "fail"], True),
    (WELL, ["error"], True),
    (Observation("abc", error="it broke"), [], True),
    (Observation("abc", forbidden=(ForbiddenResult("http_except", True),)), ["pass"], True),
    (Observation("abc", forbidden=(ForbiddenResult("http_except", False, error="cannot be told"),)), ["pass"], True),
    (Observation("abc", forbidden=(ForbiddenResult("http_except", False),)), ["pass"], False),
]


@pytest.mark.parametrize(("seen", "outcomes", "stays"), CASES)
def test_a_world_stays_if_something_went_wrong(tmp_path, monkeypatch, seen, outcomes, stays):
    monkeypatch.chdir(tmp_path)
    (KEPT / "abc").mkdir(parents=True)
    worlds = KeptWorlds(True, RunDir(Path(".holdfast/runs/0001")))
    worlds.decide(seen, map(verdict, outcomes))
    assert (KEPT / "abc").exists() is stays
    assert bool(worlds.notes) is stays


def test_a_failed_preflight_has_no_world_to_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    worlds = KeptWorlds(True, RunDir(Path(".holdfast/runs/0001")))
    worlds.decide(Observation("abc", forbidden=(ForbiddenResult("http_except", True),)))
    assert worlds.notes == ()


def test_nothing_is_touched_where_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (KEPT / "abc").mkdir(parents=True)
    worlds = KeptWorlds(False, RunDir(Path(".holdfast/runs/0001")))
    worlds.decide(WELL)
    worlds.decide(Observation("abc", error="it broke"))
    assert (KEPT / "abc").exists()
    assert worlds.notes == ()
