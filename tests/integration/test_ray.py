"""Runs on real Ray, on one machine: the same verdicts as here, whatever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long
"""A cluster takes its time to start, and more on a loaded machine than Ray waits for."""

BIN = Path(sys.executable).parent
AGENT = """
import os, signal, time

def search(query):
    return "a source says " + query

def ask(prompt):
    MISCHIEF
    try:
        return search(prompt)
    except Exception as failure:
        return f"sorry, no source: {failure}"

def reset():
    pass
"""
SPEC = """
version: "2.0"
agent:
  {type: python, endpoint: "agent:ask", tools: ["agent:search"], isolation: ISOLATION, reset_function: "agent:reset"}
golden_prompts: [one, two, three, four]
replicas: 2
contract:
  name: On Ray
  invariants:
    - {id: cites, type: contains, value: source, severity: critical, description: cites}
    - {id: never-sorry, type: contains, value: sorry, negate: true, description: never sorry}
    - {id: calm-like, type: behavior_unchanged, description: as in calm}
  chaos_matrix:
    - {name: calm}
    - {name: down, tool_faults: [{tool: search, mode: error, probability: 0.5}]}
"""
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_TOKEN": "0123456789abcdef0123456789abcdef"}
"""A cluster of the tests listens on 127.0.0.1, and takes those who know its token."""
DIES = 'if prompt == "two": os.kill(os.getpid(), 9)'
DIES_ONCE = 'if prompt == "two" and not os.path.exists("MARK"): open("MARK", "w").close(); os.kill(os.getpid(), 9)'


class Place:
    """A project, and the commands run in it on the cluster of the tests."""

    def __init__(self, folder: Path, mischief: str = "", isolation: str = "inline") -> None:
        folder.mkdir()
        self.folder = folder
        self.env = {**os.environ}
        mischief = mischief.replace("MARK", str(folder.parent / "mark")) or "pass"
        (folder / "agent.py").write_text(AGENT.replace("MISCHIEF", mischief))
        (folder / "holdfast.yaml").write_text(SPEC.replace("ISOLATION", isolation))

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        command = [str(BIN / "holdfast"), "contract", "run", "--json", "--no-report", *args]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.folder, env=self.env, **pipes)  # type: ignore[call-overload,no-any-return]

    def run(self, *args: str) -> tuple[int, Any]:
        process = self.start(*args)
        out, err = process.communicate(timeout=240)
        assert out, err.decode()
        return process.returncode, json.loads(out)

    def lines(self, name: str, run: str = "0001") -> list[Any]:
        path = self.folder / ".holdfast" / "runs" / run / name
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


MakePlace = Callable[..., Place]


def facts(report: Any) -> list[Any]:
    """The cells, without what reads the clock."""
    cells = report["parts"]["contract"]["cells"]
    plain = ("invariant", "scenario", "outcome", "reason", "passes", "fails")
    shown = [{key: cell.get(key) for key in plain} for cell in cells]
    trials = [[(t["id"], t["answer"], t["outcome"], t["faults"]) for t in cell["trials"]] for cell in cells]
    return [report["score"], shown, trials]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster with eight places, on loopback alone."""
    folder = tmp_path_factory.mktemp("r")
    env = {**os.environ, **ALONE, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token"}
    options = ["--head", "--port=0", "--num-cpus=8", "--include-dashboard=false", "--object-store-memory=100000000"]
    short = f"/tmp/hf-ray-{os.getpid()}"  # a Unix socket's path may have 107 characters
    head = subprocess.Popen(
        [str(BIN / "ray"), "start", "--block", "--temp-dir", short, *options],
        env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    noted = Path(short) / "ray_current_cluster"
    for _ in range(1200):
        if noted.exists():
            break
        assert head.poll() is None, "the cluster did not start"
        time.sleep(0.1)
    yield noted.read_text().strip()
    os.killpg(head.pid, signal.SIGKILL)
    head.wait()
    subprocess.run(["rm", "-rf", short], check=True)


@pytest.fixture
def place(tmp_path: Path, cluster: str) -> MakePlace:
    def make(mischief: str = "", isolation: str = "inline", name: str = "project") -> Place:
        made = Place(tmp_path / name, mischief, isolation)
        made.env |= {"RAY_ADDRESS": cluster, **ALONE}
        return made

    return make


def test_the_same_trials_faults_and_verdicts_on_any_number_of_workers(place: MakePlace) -> None:
    made = place(isolation="fresh")
    code, here = made.run("--seed", "7")
    for workers in ("1", "2", "8"):
        there, report = made.run("--seed", "7", "--on", "ray", "-j", workers)
        assert (there, facts(report)) == (code, facts(here))
        assert any(note.startswith("ran on Ray: ") for note in report["notes"]), report["notes"]
    stored = [sorted(seen["trial"] for seen in made.lines("observations-0.jsonl", run)) for run in ("0001", "0004")]
    assert stored[0] == stored[1]


def test_what_a_lost_worker_had_is_run_again_and_stands_in_the_record_once(place: MakePlace) -> None:
    code, here = place(name="quiet").run()
    made = place(DIES_ONCE)
    there, report = made.run("--on", "ray", "--no-preflight")
    assert (there, facts(report)) == (code, facts(here))
    assert any("1 worker " in note for note in report["notes"]), report["notes"]
    trials = [seen["trial"] for seen in made.lines("observations-0.jsonl")]
    assert len(trials) == len(set(trials))


def test_a_trial_that_no_worker_outlives_is_our_error_and_the_others_stand(place: MakePlace) -> None:
    made = place(DIES.replace("two", "four"))
    code, report = made.run("--on", "ray", "--no-preflight", "--invariant", "cites", "--scenario", "calm")
    assert code == 3
    (cell,) = report["parts"]["contract"]["cells"]
    answers = {trial["prompt"]: trial["outcome"] for trial in cell["trials"]}
    assert answers == {"one": "pass", "two": "pass", "three": "pass", "four": "error"}
    assert "3 workers " in json.dumps(cell)


def test_a_killed_driver_is_taken_up_here(place: MakePlace) -> None:
    made = place("time.sleep(0.2)")
    _, whole = place(name="whole").run()
    process = made.start("--on", "ray", "-j", "2")
    deadline = time.monotonic() + 120
    while len(made.lines("observations-0.jsonl")) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.communicate()
    _, report = made.run("--resume", "0001")
    assert facts(report) == facts(whole)


def test_a_run_begun_here_is_taken_up_on_the_cluster(place: MakePlace) -> None:
    made = place("time.sleep(0.2)")
    _, whole = place(name="whole").run()
    process = made.start()
    deadline = time.monotonic() + 120
    while len(made.lines("observations-0.jsonl")) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.communicate()
    _, report = made.run("--resume", "0001", "--on", "ray", "-j", "2")
    assert facts(report) == facts(whole)
    trials = [seen["trial"] for seen in made.lines("observations-0.jsonl")]
    assert len(trials) == len(set(trials))


def test_a_cluster_of_the_run_s_own_lives_as_long_as_the_run(tmp_path: Path) -> None:
    made = Place(tmp_path / "project", isolation="fresh")
    made.env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    code, here = made.run("--seed", "7")
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp", ignore_cleanup_errors=True) as short:
        made.env["RAY_TMPDIR"] = short
        there, report = made.run("--seed", "7", "--on", "ray", "-j", "2")
    assert (there, facts(report)) == (code, facts(here))


def test_no_cluster_and_what_is_of_one_machine_are_told(place: MakePlace, tmp_path: Path) -> None:
    made = place()
    code, report = made.run("--on", "ray", "--record", str(tmp_path / "calls.jsonl"))
    assert (code, report["errors"][0]["message"].startswith("--record: ")) == (4, True)
    code, report = made.run("--on", "ray", "--keep")
    assert (code, report["errors"][0]["code"]) == (4, "options-conflict")
    made.env["RAY_ADDRESS"] = "127.0.0.1:9"
    code, report = made.run("--on", "ray")
    assert (code, report["errors"][0]["code"]) == (4, "cluster-unavailable")


LISTENS = """
import json, os
from holdfast.execute.ray_cluster import connect
cluster = connect("ray", 1, {})
mine = {int(word) for word in os.popen(f"ps -o pid= -s {os.getsid(0)}").read().split()}
inodes = set()
for pid in mine:
    try:
        inodes |= {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        pass
found = []
for table in ("/proc/net/tcp", "/proc/net/tcp6"):
    for line in open(table).readlines()[1:]:
        words = line.split()
        if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
            found.append(words[1].rpartition(":")[0])
cluster.close()
print(json.dumps(found))
"""


def test_a_cluster_of_our_own_listens_on_loopback_alone() -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as short:
        env["RAY_TMPDIR"] = short  # another cluster of this machine is not joined
        words = [sys.executable, "-c", LISTENS]
        ran = subprocess.run(words, env=env, capture_output=True, timeout=240, start_new_session=True)
    assert ran.returncode == 0, ran.stderr
    addresses = json.loads(ran.stdout.splitlines()[-1])
    assert addresses
    assert set(addresses) <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
