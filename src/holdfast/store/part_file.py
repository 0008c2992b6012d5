"""`part.json`: the tasks and rules of a mutation run or a replay, which the spec alone does not contain."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.model.codec import create_decoder
from holdfast.model.scenario import Scenario
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Task
from holdfast.store.rundir import RunDir, read_json, write_json

_NAME = "part.json"


class PartFile(Struct, frozen=True):
    """The generated tasks, the rules that judge them, and the scenarios of sessions."""

    tasks: tuple[Task, ...]
    invariants: tuple[Invariant, ...]
    scenarios: tuple[Scenario, ...]


def write_part(run: RunDir, spec: Spec) -> None:
    """Store what was derived from the spec, if anything was."""
    if spec.part in ("mutation", "replay"):
        write_json(run.path / _NAME, PartFile(spec.tasks, spec.invariants, spec.scenarios))


def apply_part(run: RunDir, spec: Spec, *, own_rules: bool = False) -> Spec:
    """Return the spec with the tasks, rules and scenarios that the run began with; `own_rules`: with the spec's own
    rules.
    """
    path = run.path / _NAME
    if not path.is_file():
        return spec
    stored = read_json(path, create_decoder(PartFile))
    if not own_rules:
        return replace(spec, tasks=stored.tasks, invariants=stored.invariants, scenarios=stored.scenarios)
    if spec.part == "replay":
        hint = "replay the sessions again: holdfast replay run -c FILE"
        raise UsageError(
            f"run {run.id}: its sessions are judged by the contracts they name", hint=hint, code="run-unusable"
        )
    return replace(spec, tasks=stored.tasks, invariants=tuple(rule.with_task_probes() for rule in spec.invariants))
