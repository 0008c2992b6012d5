"""A worker without its cluster: what it opens, and what it refuses."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import UserError
from holdfast.execute import ray_cluster
from holdfast.execute.ray_cluster import RayThread
from holdfast.execute.ray_worker import (
    TrialWorker,
    WorkerReport,
    WorkOrder,
    build_environment,
    encode_observation,
    get_python_version,
    hash_secrets,
    read_observation,
)
from holdfast.model.codec import encode
from holdfast.model.observation import Observation, Turn
from holdfast.plan import build_plan
from holdfast.spec import load

SPEC = """
version: "2.0"
agent: {type: python, endpoint: "agent:ask", isolation: inline}
golden_prompts: [one, two]
contract:
  name: c
  invariants: [{id: answers, type: completes, description: answers}]
  chaos_matrix: [{name: calm}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "agent.py").write_text("def ask(prompt):\n    return prompt.upper()\n")
    (tmp_path / "holdfast.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-worker")
    return tmp_path


@pytest.fixture
def worker() -> Iterator[TrialWorker]:
    made = TrialWorker()
    yield made
    made.close()


def order(folder: Path, **more: Any) -> WorkOrder:
    spec, _ = load(folder / "holdfast.yaml", environ={})
    given: dict[str, Any] = {
        "version": holdfast.__version__,
        "python": get_python_version(),
        "spec": pickle.dumps(spec),
        "spec_name": "holdfast.yaml",
        "root": str(folder),
        "slots": 1,
        "backend": "bubblewrap",
        "strict_world": False,
        "trusted": False,
        "variables": None,
        "salt": "s",
        "secrets": hash_secrets(["sk-of-this-worker"], "s"),
    }
    return WorkOrder(**(given | more))


def opened(worker: TrialWorker, made: WorkOrder) -> WorkerReport:
    return worker.open(made.version, made.python, pickle.dumps(made))


def test_a_worker_opens_a_site_and_runs_what_it_is_given(worker: TrialWorker, folder: Path) -> None:
    made = order(folder)
    report = opened(worker, made)
    assert (report.refused, report.slots) == ("", 1)
    trials = build_plan(pickle.loads(made.spec)).trials
    lines = worker.run(list(map(encode, trials)))
    assert isinstance(lines, list)
    assert [(seen.trial, seen.turns[0].text) for seen in map(read_observation, lines)] == [
        (trial.id, trial.task.prompt.upper()) for trial in trials
    ]


@pytest.mark.parametrize(
    "change",
    [{"version": "0.0.0"}, {"python": "3.0"}, {"secrets": ()}],
)
def test_another_version_or_secret_is_refused_with_its_reason(
    worker: TrialWorker, folder: Path, change: dict[str, Any]
) -> None:
    report = opened(worker, order(folder, **change))
    assert (report.code, bool(report.hint), report.config) == ("worker-differs", True, False)


def test_an_agent_that_cannot_be_used_is_the_spec_s_fault(worker: TrialWorker, folder: Path) -> None:
    (folder / "agent.py").write_text("import nowhere_at_all\n")
    report = opened(worker, order(folder))
    assert isinstance(report, WorkerReport)
    assert (report.code, "nowhere_at_all" in report.refused, report.config) == ("agent-import-failed", True, True)


def test_what_is_sent_and_what_the_cluster_added(folder: Path) -> None:
    own = {"PATH": "/bin", "RAY_JOB_ID": "1", "OMP_NUM_THREADS": "1", "KEY": "theirs"}
    assert build_environment(order(folder), own) == {"PATH": "/bin", "OMP_NUM_THREADS": "1", "KEY": "theirs"}
    as_here = order(folder, variables=("PATH", "KEY", "GONE"), sent={"KEY": "ours"})
    assert build_environment(as_here, own) == {"PATH": "/bin", "KEY": "ours"}


def test_halves_of_characters_travel() -> None:
    seen = read_observation(encode_observation(Observation("a", (Turn("?", "half \ud800"),))))
    assert seen.turns[0].text is not None
    assert seen.turns[0].text.startswith("half ")


def test_digests_tell_nothing_without_their_salt() -> None:
    assert hash_secrets(["one", "two"], "a") == hash_secrets(["two", "one", "one"], "a")
    assert hash_secrets(["one"], "a") != hash_secrets(["one"], "b")


# Calls to Ray that may never come back.


def test_all_calls_are_of_one_thread_that_lives_on() -> None:
    """A cluster of our own dies with the thread that started it."""

    async def go() -> set[int]:
        thread = RayThread()
        return {await thread.run(threading.get_ident, "it was not told") for _ in range(3)}

    (ident,) = asyncio.run(go())
    assert ident in {one.ident for one in threading.enumerate()}
    assert ident != threading.get_ident()


def test_what_never_returns_is_reported_and_what_it_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "ANSWER_S", 0.05)
    forever = threading.Event()
    with pytest.raises(UserError) as raised:
        asyncio.run(RayThread().run(forever.wait, "the cluster was not joined"))
    assert raised.value.code == "cluster-unavailable"
    forever.set()
    with pytest.raises(ZeroDivisionError):
        asyncio.run(RayThread().run(lambda: 1 // 0, "x"))
