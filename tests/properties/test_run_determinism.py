"""One spec and one seed give the same faults, answers and score, in any order and however many run at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.plan import RunOptions, Select
from holdfast.report.formats.json import Json
from holdfast.runner.job import Job
from holdfast.runner.outcome import conclude
from holdfast.runner.run import run
from holdfast.runner.start import begin
from holdfast.spec import load
from holdfast.store.rundir import RunEnd

SPEC = """
version: "2.0"
agent: {type: python, endpoint: "agent:ask", tools: ["agent:search"], llm: "agent:model"}
golden_prompts: [alpha, beta]
replicas: 2
advanced: {seed: 11}
contract:
  name: Determinism
  invariants:
    - {id: cites, type: contains, value: "[alpha", severity: critical, description: d}
    - {id: unmoved, type: behavior_unchanged, description: d}
    - {id: clean, type: regex, pattern: "x", negate: true, when: tool_faults_active, description: d}
  chaos_matrix:
    - {name: calm}
    - name: flaky-tool
      tool_faults: [{tool: search, mode: error, probability: 0.4}]
    - name: drift
      tool_faults: [{tool: search, mode: wrong_value, probability: 0.7}]
      llm_faults: [{mode: truncated_response, max_tokens: 3, probability: 0.5}]
    - name: lies
      context_attacks: [{type: indirect_injection, trigger_probability: 0.5}]
"""
AGENT = """
def search(query):
    return {"query": query, "price": 127.45, "volume": 2400}

def model(text):
    return text + " and these are all the words there are to say about it"

def ask(prompt):
    said = []
    for n in range(4):
        try:
            said.append(str(search(f"{prompt}-{n}")))
        except Exception:
            said.append("x")
    return f"[{prompt}] " + model(" ".join(said))
"""
UNSTABLE = {"latency_ms", "duration_s", "started", "run_id", "again", "reason"}
"""What reads the clock or counts runs. A reason may quote a latency."""

Shuffle = Callable[[list[Any]], list[Any]]


def normalised(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: normalised(inner) for key, inner in value.items() if key not in UNSTABLE}
    return [normalised(inner) for inner in value] if isinstance(value, list | tuple) else value


def result(folder: Path, concurrency: int, shuffle: Shuffle = lambda trials: trials) -> Any:
    """A run's whole report, without what reads the clock."""
    spec, _ = load(folder / "holdfast.yaml", environ={})
    job = Job(spec, RunOptions(Select(), concurrency=concurrency), dict(os.environ))
    job.plan.trials = shuffle(list(job.plan.trials))
    rundir = begin(job, folder / "runs")
    running = run(job, rundir, lambda event: None)
    ended = rundir.read_end() or RunEnd(False, 0.0)
    outcome = conclude(rundir, spec, job.plan, running.intake.tally, job.options, ended=ended)
    rundir.unlock()
    try:
        return normalised(json.loads(b"".join(Json().render(outcome.run)["report.json"])))
    finally:
        outcome.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("determinism")
    (made / "holdfast.yaml").write_text(SPEC)
    (made / "agent.py").write_text(AGENT)
    return made


@pytest.fixture(scope="module")
def first(folder: Path) -> Any:
    return result(folder, 1)


@pytest.mark.parametrize("concurrency", [1, 4, 8])
def test_two_runs_give_identical_results_at_any_concurrency(folder: Path, first: Any, concurrency: int) -> None:
    assert result(folder, concurrency) == first


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_order_of_trials_changes_nothing(folder: Path, first: Any, concurrency: int) -> None:
    assert result(folder, concurrency, lambda trials: trials[::-1]) == first
    assert result(folder, concurrency, lambda trials: trials[1::2] + trials[::2]) == first


def test_the_runs_compared_have_something_to_differ_in(first: Any) -> None:
    cells = first["parts"]["contract"]["cells"]
    assert {cell["outcome"] for cell in cells} >= {"pass", "fail", "n/a"}
    modes = {fault["mode"] for cell in cells for trial in cell["trials"] for fault in trial["faults"]}
    assert modes >= {"error", "wrong_value", "truncated_response", "indirect_injection"}
    answers = [trial["answer"] for cell in cells for trial in cell["trials"]]
    assert len(set(answers)) > 6
