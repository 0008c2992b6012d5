"""What `holdfast run` reads of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.model.task import Task
from holdfast.spec import LoadOptions, check

HEAD = 'version: 1\nid: a-b\nagent: {endpoint: "http://x"}\ntask: {prompt: p}\n'
MAP = "invariants: {r: {description: d, check: {type: contains, value: x}}}\n"
MATRIX = "chaos_matrix: [{name: quiet}]\n"


def read(folder: Path, text: str, **more: object):
    path = folder / "s.yaml"
    path.write_text(text)
    return check(path, environ={}, options=LoadOptions(part="scenario", **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["version", "id", "task", "invariants"])
def test_each_required_key_is_missed(tmp_path: Path, key: str) -> None:
    text = "".join(line for line in (HEAD + MAP).splitlines(keepends=True) if not line.startswith(key))
    (problem,) = read(tmp_path, text).problems
    assert (problem.path, problem.code, problem.line) == (key, "missing-key", 1)


def test_without_a_matrix_there_is_one_calm_scenario(tmp_path: Path) -> None:
    spec = read(tmp_path, HEAD + MAP).spec
    assert ([s.name for s in spec.scenarios], spec.matrix, spec.part) == (["calm"], False, "scenario")


def test_a_matrix_or_a_profile_is_reported_next_to_the_cases(tmp_path: Path) -> None:
    spec = read(tmp_path, HEAD + MAP + MATRIX).spec
    assert ([s.name for s in spec.scenarios], spec.matrix) == (["quiet"], True)


def test_rules_with_trials_of_their_own_are_a_contract_too(tmp_path: Path) -> None:
    probed = MAP.replace("description: d", "description: d, probes: [hi]")
    assert read(tmp_path, HEAD + probed).spec.matrix


def test_a_scenario_asks_its_task_whatever_a_contract_would_ask(tmp_path: Path) -> None:
    assert read(tmp_path, HEAD + MAP + "golden_prompts: [g]\n").spec.tasks == (Task(("p",), "task"),)


def test_a_mean_of_composites_needs_no_matrix(tmp_path: Path) -> None:
    assert read(tmp_path, HEAD + MAP + "scoring: {replica_aggregation: mean}\n").problems == ()


def test_a_list_of_rules_next_to_a_task_is_distinguished(tmp_path: Path) -> None:
    (problem,) = read(tmp_path, HEAD + "invariants: [{type: contains, value: x}]\n").problems
    assert (problem.path, problem.line, problem.code) == ("invariants", 5, "wrong-type")
    assert "map" in problem.message
