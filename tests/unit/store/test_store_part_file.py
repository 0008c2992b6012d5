"""`part.json`: what a mutation run asks and holds comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Recording, RequestChange, Task, Variation
from holdfast.runner.start import apply_part, write_part
from holdfast.store.rundir import RunDir

TASKS = (
    Task(("one", "two"), "mutation", Variation("noise", "One", "typos", attack=True, canaries=("c",))),
    Task(("x",), "mutation", Variation("m", "x", request=RequestChange("m", headers=(("a", "b\r\n"),)))),
    Task(("y",), "replay", recording=Recording("s1")),
    Task(("z",), "probe"),
)
RULES = (Invariant("a", "contains", {"value": "ü"}, asked_only=("z",)), Invariant("b", "completes", attacks_only=True))
FILE = Spec("spec.yaml", AgentSpec(), tasks=(Task(("golden",)),))


@pytest.mark.parametrize("part", ["mutation", "replay"])
def test_tasks_and_rules_come_back(part: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_part(run, replace(FILE, part=part, tasks=TASKS, invariants=RULES))
    found = apply_part(run, FILE)
    assert (found.tasks, found.invariants) == (TASKS, RULES)


@pytest.mark.parametrize("part", ["contract", "scenario", "chaos"])
def test_other_parts_are_what_their_file_says(part: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_part(run, replace(FILE, part=part, tasks=TASKS))
    assert list(tmp_path.iterdir()) == []
    assert apply_part(run, FILE) is FILE
