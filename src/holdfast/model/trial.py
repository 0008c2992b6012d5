"""A Trial: one agent run, fully determined by its content and seed."""

from typing import Any, Literal

from msgspec import Struct, field

from holdfast.model.scenario import Scenario
from holdfast.model.task import Task

CONTROL = Scenario("control")
"""The empty scenario of control trials."""


class Trial(Struct, frozen=True, omit_defaults=True, gc=False):
    """One independent agent run: a task, in a scenario, for a rule.

    It carries the scenario itself, so a planner may invent scenarios that the spec does not have. Trials of one
    scenario share the object.
    """

    id: str
    kind: Literal["contract", "control"]
    scenario: Scenario
    task: Task
    replica: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    invariant: str = "*"
    """The one rule it serves, or `*` for every rule of the scenario."""
    seed: int = 0
