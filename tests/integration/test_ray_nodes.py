"""Real Ray on two nodes: the client, a node that dies, one with another Holdfast, files, tokens, a full store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from test_ray import AGENT, ALONE, Place, facts

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src/holdfast"
WORLD = """
agent: {type: command, command: "psql -qAt \\"$DATABASE_URL\\" -c \\"insert into orders values (3); select count(*) from orders\\"; curl -sf $MAIL_URL/items || echo sorry"}
golden_prompts: [one, two, three, four]
replicas: 2
services:
  - {name: db, image: "postgres:16"}
  - {name: mail, type: http_mock, record: true, routes: [{path: /items, response: "[]"}]}
fixtures: [{type: sql, service: db, sql: "create table orders (id int); insert into orders values (1), (2)"}]
contract:
  name: A world on Ray
  invariants:
    - {id: counts, type: contains, value: "3", severity: critical}
    - {id: never-sorry, type: contains, value: sorry, negate: true}
    - {id: one-row, type: sql, service: db, query: "select count(*) from orders where id = 3", equals: 1}
  chaos_matrix:
    - {name: calm}
    - {name: down, http_faults: [{match_url: "http://mail*", mode: reset_peer, probability: 0.5}]}
"""  # noqa: E501


class Nodes(NamedTuple):
    address: str
    client: str
    say: Callable[[str], None]


@contextmanager
def nodes(*, overlay: bool = False) -> Iterator[Nodes]:
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp", ignore_cleanup_errors=True) as short:
        folder = Path(short)
        if overlay:
            shutil.copytree(SOURCE, folder / "overlay/holdfast")
            version = folder / "overlay/holdfast/version.py"
            version.write_text(version.read_text().replace('__version__ = "', '__version__ = "9.'))
        env = {**os.environ, **ALONE, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token"}
        words = [sys.executable, str(HERE / "ray_nodes.py"), short]
        quiet = subprocess.DEVNULL
        run = subprocess.Popen(words, env=env, cwd=short, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, text=True)
        assert run.stdin is not None
        noted, until = folder / "address", time.monotonic() + 120
        while not noted.exists() or not noted.read_text():
            assert run.poll() is None, "the cluster did not start"
            assert time.monotonic() < until, "the cluster did not start in time"
            time.sleep(0.1)

        def say(word: str) -> None:
            assert run.stdin is not None
            run.stdin.write(word + "\n")
            run.stdin.flush()

        address, client = noted.read_text().split()
        try:
            yield Nodes(address, client, say)
        finally:
            say("end")
            run.wait(60)
            run.stdin.close()


@pytest.fixture(scope="module")
def two() -> Iterator[Nodes]:
    with nodes() as made:
        yield made


def placed(folder: Path, two: Nodes, mischief: str = "", isolation: str = "fresh") -> Place:
    made = Place(folder, mischief, isolation)
    made.env |= {"RAY_ADDRESS": two.address, **ALONE}
    return made


def test_the_executor_on_ray_keeps_the_kit_s_promises(two: Nodes, tmp_path: Path) -> None:
    env = {**os.environ, **ALONE, "RAY_ADDRESS": two.address}
    words = [sys.executable, str(HERE / "ray_kit_run.py"), str(tmp_path)]
    ran = subprocess.run(words, env=env, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == {}


def test_a_world_with_postgres_and_a_mock_gives_the_same_here_on_two_nodes_and_in_four_shards(
    two: Nodes, tmp_path: Path
) -> None:
    made = placed(tmp_path / "p", two)
    (made.folder / "holdfast.yaml").write_text(WORLD)
    code, here = made.run("--seed", "7")
    for workers in ("1", "4"):
        there, report = made.run("--seed", "7", "--on", "ray", "-j", workers)
        assert (there, facts(report)) == (code, facts(here))
    for number in range(1, 5):
        made.run("--seed", "7", "--on", "ray", "--shard", f"{number}/4")
    shards = [f".holdfast/runs/{number:04}" for number in range(4, 8)]
    words = [str(Path(sys.executable).parent / "holdfast"), "merge", "--json", *shards]
    merged = subprocess.run(words, cwd=made.folder, capture_output=True, timeout=120)
    assert (merged.returncode, facts(json.loads(merged.stdout))) == (code, facts(here))


def test_ci_on_ray_is_ci_here(two: Nodes, tmp_path: Path) -> None:
    made = placed(tmp_path / "p", two, isolation="inline")
    spec = made.folder / "holdfast.yaml"
    spec.write_text(
        spec.read_text() + "invariants: [{id: source, type: contains, value: source}]\n"
        "mutations: {types: [noise], count: 2}\n"
    )
    found = []
    for args in ((), ("--on", "ray", "-j", "2")):
        words = [str(Path(sys.executable).parent / "holdfast"), "ci", "--json", "--no-report", *args]
        ran = subprocess.run(words, cwd=made.folder, env=made.env, capture_output=True, timeout=240)
        report = json.loads(ran.stdout)
        found.append((ran.returncode, report["score"], {n: p["score"] for n, p in report["parts"].items()}))
    assert found[0] == found[1]


def test_a_file_outside_of_the_folder_is_refused_before_anything_runs(two: Nodes, tmp_path: Path) -> None:
    made = placed(tmp_path / "p", two)
    (tmp_path / "outside.txt").write_text("x")
    world = WORLD.replace("fixtures: [", "fixtures: [{type: files, files: [{path: a, source: ../outside.txt}]}, ")
    (made.folder / "holdfast.yaml").write_text(world)
    code, report = made.run("--on", "ray")
    assert code == 4
    assert report["errors"][0]["code"] == "cluster-file-missing"


def test_large_answers_come_through_a_small_store_that_cannot_spill(two: Nodes, tmp_path: Path) -> None:
    made = placed(tmp_path / "p", two, isolation="inline")
    large = AGENT.replace("MISCHIEF", "pass").replace('"a source says "', '"a source says " + "x" * 25_000_000 + ')
    (made.folder / "agent.py").write_text(large)
    code, report = made.run("--on", "ray", "--no-preflight", "--invariant", "cites", "--scenario", "calm")
    (cell,) = report["parts"]["contract"]["cells"]
    assert (code, cell["outcome"]) == (0, "pass")


def test_another_token_is_no_way_in(two: Nodes, tmp_path: Path) -> None:
    made = placed(tmp_path / "p", two)
    made.env["RAY_AUTH_TOKEN"] = "f" * 32
    code, report = made.run("--on", "ray")
    assert (code, report["errors"][0]["code"]) == (4, "cluster-unavailable")


def test_through_the_client_s_door_a_node_dies_and_nothing_is_lost(tmp_path: Path) -> None:
    with nodes() as two:
        quiet = placed(tmp_path / "quiet", two)
        code, here = quiet.run("--seed", "7")
        made = placed(tmp_path / "p", two, "time.sleep(0.6)")
        running = made.start("--seed", "7", "--on", two.client)
        until = time.monotonic() + 120
        while len(made.lines("observations-0.jsonl")) < 5 and time.monotonic() < until:
            time.sleep(0.1)
        two.say("kill")
        out, err = running.communicate(timeout=240)
    report = json.loads(out)
    assert (running.returncode, facts(report)) == (code, facts(here)), err
    assert any("lost" in note and "run again" in note for note in report["notes"]), report["notes"]
    trials = [seen["trial"] for seen in made.lines("observations-0.jsonl")]
    assert len(trials) == len(set(trials))


def test_a_node_with_another_holdfast_is_named_and_its_share_run_elsewhere(tmp_path: Path) -> None:
    with nodes(overlay=True) as two:
        made = placed(tmp_path / "p", two)
        code, here = made.run("--seed", "7")
        there, report = made.run("--seed", "7", "--on", "ray", "-j", "2")
        assert (there, facts(report)) == (code, facts(here))
        assert any("it has Holdfast 9." in note for note in report["notes"]), report["notes"]
        (made.folder / "holdfast.yaml").write_text(WORLD + "resources: {labels: [second]}\n")
        code, report = made.run("--on", "ray")
        assert (code, report["errors"][0]["code"]) == (4, "cluster-full")
