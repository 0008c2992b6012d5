"""This machine as it is, around one trial."""

from __future__ import annotations

from pathlib import Path

from holdfast.execute.context import LiveContext
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.world.bare_world import BareWorld, Machine


def test_what_a_check_noted_is_there_when_it_looks_again_and_in_no_other_world() -> None:
    context = LiveContext(Trial("a", "contract", Scenario("calm"), Task(("x",))))
    world, other = (BareWorld(context, Machine(Path(), {})) for _ in range(2))
    world.foreseen["check", "db"] = 1
    assert world.foreseen == {("check", "db"): 1}
    assert other.foreseen == {}
