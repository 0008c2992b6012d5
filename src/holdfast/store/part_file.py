"""`part.json`: what a mutation run or a replay asks and holds, which its spec alone does not say."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.model.codec import decoder
from holdfast.model.scenario import Scenario
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Task
from holdfast.store.rundir import RunDir, read_json, write_json

_NAME = "part.json"


class PartFile(Struct, frozen=True):
    """The tasks that were made, the rules that judge them, and their weather, which sessions bring along."""

    tasks: tuple[Task, ...]
    invariants: tuple[Invariant, ...]
    scenarios: tuple[Scenario, ...]


def keep_part(run: RunDir, spec: Spec) -> None:
    """Stores what was made of the spec, where something was."""
    if spec.part in ("mutation", "replay"):
        write_json(run.path / _NAME, PartFile(spec.tasks, spec.invariants, spec.scenarios))


def with_part(run: RunDir, spec: Spec, *, own_rules: bool = False) -> Spec:
    """The spec with the tasks, rules and scenarios that the run was begun with; `own_rules`: with its own rules."""
    path = run.path / _NAME
    if not path.is_file():
        return spec
    kept = read_json(path, decoder(PartFile))
    if not own_rules:
        return replace(spec, tasks=kept.tasks, invariants=kept.invariants, scenarios=kept.scenarios)
    if spec.part == "replay":
        hint = "replay the sessions again: holdfast replay run -c FILE"
        raise UsageError(
            f"run {run.id}: its sessions are judged by the contracts they name", hint=hint, code="run-unusable"
        )
    return replace(spec, tasks=kept.tasks, invariants=tuple(rule.on_tasks() for rule in spec.invariants))
