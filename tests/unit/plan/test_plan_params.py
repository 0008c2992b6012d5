"""Rules whose settings hold parameters are judged with the trial's own."""

from __future__ import annotations

import pytest

from holdfast.judge import Judge
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan.checks import fill_params, has_params


@pytest.mark.parametrize(
    "settings",
    [{"value": "{{ params.x }}"}, {"values": ["a", "{{params.x}}"]}, {"schema": {"const": "{{ params.x }}"}}],
)
def test_parameters_are_found_and_filled_at_any_depth(settings: dict[str, object]) -> None:
    rule = Invariant("a", "contains", settings)
    assert has_params(rule)
    filled = fill_params(rule, {"x": "blue"})
    assert not has_params(filled)
    assert "blue" in str(filled.settings)


def test_a_rule_without_parameters_is_left_alone() -> None:
    assert not has_params(Invariant("a", "contains", {"value": "${x} {{ secrets.x }}"}))


def test_each_trial_is_judged_with_its_own_parameters() -> None:
    rule = Invariant("a", "contains", {"value": "{{ params.x }}"})
    judge = Judge(Spec("s.yaml", AgentSpec(), invariants=(rule,)))
    seen = Observation("t", (Turn("q", "blue"),))
    outcomes = [
        judge.judge(rule, Trial("t", "contract", Scenario("calm"), Task(("q",)), params={"x": x}), seen).outcome
        for x in ("blue", "red", "blue")
    ]
    assert outcomes == ["pass", "fail", "pass"]


def test_a_command_takes_a_param_as_one_word():
    rule = Invariant("r", "command_exit", {"command": "test -f {{ params.x }}", "exit_code": 0})
    assert fill_params(rule, {"x": "a b; rm c"}).settings == {"command": "test -f 'a b; rm c'", "exit_code": 0}
