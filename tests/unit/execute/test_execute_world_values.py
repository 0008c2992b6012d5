"""The world of one trial: its references replaced by values."""

from __future__ import annotations

import subprocess

from holdfast.execute.resolved_spec import make_fill
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import Fixture, ServiceSpec, Setup, WorldSpec

HOSTILE = ["two words", "$(echo no)", "'; echo no; '", '"', "`id`", ""]


def trial(value: str) -> Trial:
    return Trial(id="a" * 12, kind="contract", scenario=Scenario("calm"), task=Task(("go",)), params={"x": value})


def test_a_param_in_text_of_a_shell_is_one_word() -> None:
    for written in ["{{ params.x }}", '"{{ params.x }}"', "'{{ params.x }}'"]:
        for value in HOSTILE:
            command = f"printf '%s|' {written} end"
            world = WorldSpec(
                setup=Setup(commands=(command,)), services=(ServiceSpec("db", "postgres", wait_for=command),)
            )
            found = make_fill(world, {}, {})(trial(value))
            for filled in (found.setup.commands[0], found.services[0].wait_for):
                assert filled is not None, (written, value)
                said = subprocess.run(["sh", "-c", filled], capture_output=True, text=True, check=True).stdout
                assert said == f"{value}|end|", (written, value)


def test_in_other_text_it_stands_as_it_is() -> None:
    world = WorldSpec(fixtures=(Fixture("sql", service="db", sql="select '{{ params.x }}', '${A}'"),))
    assert make_fill(world, {}, {})(trial("two words")).fixtures[0].sql == "select 'two words', '${A}'"
