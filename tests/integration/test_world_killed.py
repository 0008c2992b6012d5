"""Holdfast is killed in the middle of its trials, at moments of a seeded luck: what is left, and what clean removes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from world_runs import spec_of

from holdfast.world.sandbox.limits import PREFIX, find_parents

HOLDFAST = [str(Path(sys.executable).with_name("holdfast"))]
_luck = random.Random(7)
MOMENTS = [round(_luck.uniform(0.4, 4.0), 2) for _ in range(6)]
UNDER_WAY_S = 3.0
"""By then trials are under way, on a busy machine, too."""
WATCH = """
import os, signal, subprocess, sys, time
from holdfast.processes.leftovers import keep_orphans
from holdfast.processes.leftovers import list_family
keep_orphans()
moment, *argv = sys.argv[1:]
run = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
time.sleep(float(moment))
grown = len(set(list_family([run.pid])))
os.kill(run.pid, signal.SIGKILL)
run.wait()
until = time.monotonic() + 15
while (left := set(list_family([os.getpid()])) - {os.getpid()}) and time.monotonic() < until:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    time.sleep(0.05)
print(run.pid, grown, len(left))
"""


def spec():
    return spec_of(
        "(setsid sleep 600 &); psql -qc 'INSERT INTO t VALUES (1)' $DATABASE_URL; sleep 0.3; echo done",
        services=[
            {"name": "db", "image": "postgres:16"},
            {"name": "cache", "image": "redis:7"},
            {"name": "mail", "type": "http_mock"},
        ],
        fixtures=[{"type": "sql", "service": "db", "sql": "CREATE TABLE t (id int)"}],
        resources={"memory": "512Mi", "disk": "64Mi"},
        determinism={"clock": "2026-01-01T00:00:00Z"},
        parallelism={"replicas": 40},
    )


def own(folder):
    """An environment with a place for temporary files that no other run sweeps."""
    (folder / "tmp").mkdir(exist_ok=True)
    return {**os.environ, "TMPDIR": str(folder / "tmp")}


def folders(pid, folder):
    """What a run that had this number has in places for passing things."""
    places = (folder / "tmp", Path("/dev/shm"))
    return sorted(path for place in places if place.is_dir() for path in place.glob(f"holdfast-*-{pid}-*"))


def groups(pid):
    return [path for parent in set(find_parents().values()) for path in parent.glob(f"{PREFIX}{pid}-*")]


@pytest.mark.parametrize(
    "moment", [*MOMENTS[::3], *(pytest.param(at, marks=pytest.mark.long) for at in MOMENTS if at not in MOMENTS[::3])]
)
def test_nothing_is_left_of_a_killed_run(tmp_path, moment):
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec()))
    mounted = Path("/proc/self/mounts").read_text()
    words = [*HOLDFAST, "run", "-c", "spec.yaml", "--no-preflight"]
    watched = subprocess.run(
        [sys.executable, "-c", WATCH, str(moment), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=own(tmp_path),
    )
    assert watched.returncode == 0, watched.stderr
    pid, grown, left = map(int, watched.stdout.split())
    assert grown > (4 if moment > UNDER_WAY_S else 0)
    assert left == 0, "processes outlived the run"
    assert Path("/proc/self/mounts").read_text() == mounted
    before = [path for path in folders(pid, tmp_path) if path.is_relative_to(tmp_path)]
    cleaned = subprocess.run(
        [*HOLDFAST, "clean"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True, env=own(tmp_path)
    )
    for path in before:  # those in memory may have been removed by another run that began meanwhile
        assert f"removed {path}" in cleaned.stdout
    assert folders(pid, tmp_path) == []
    assert groups(pid) == []


def test_a_run_that_is_interrupted_cleans_up_itself(tmp_path):
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec()))
    words = [*HOLDFAST, "run", "-c", "spec.yaml", "--no-preflight"]
    quiet = subprocess.DEVNULL
    run = subprocess.Popen(words, cwd=tmp_path, stdout=quiet, stderr=quiet, env=own(tmp_path))
    until = time.monotonic() + 60
    while not folders(run.pid, tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1.0)  # trials are under way, and not all of them are done
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 2
    assert folders(run.pid, tmp_path) == []
    assert groups(run.pid) == []
    assert not os.path.exists(f"/proc/{run.pid}")
