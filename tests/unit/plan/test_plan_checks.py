"""Rules to checks: settings as they come back from storage."""

from __future__ import annotations

import json

import pytest

from holdfast.errors import PluginError
from holdfast.judge import Judge
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan.checks import fill_params, get_traits, has_params, make_check

ASSERTIONS = [{"field": "request_count", "filters": {"method": "POST"}, "equals": 1}]


def test_lists_become_tuples_and_maps_what_the_check_declares() -> None:
    settings = json.loads(json.dumps({"service": "smtp", "assertions": ASSERTIONS}))
    made = make_check(Invariant("r", "http_mock_assertions", settings))
    assert isinstance(made.assertions, tuple)  # type: ignore[attr-defined]
    assert made.assertions[0].filters == {"method": "POST"}  # type: ignore[attr-defined]
    assert make_check(Invariant("r", "contains_any", {"values": ["a"]})).values == ("a",)  # type: ignore[attr-defined]


def test_a_setting_of_the_wrong_kind_names_the_rule() -> None:
    with pytest.raises(PluginError) as raised:
        make_check(Invariant("r", "http_mock_assertions", {"service": "smtp", "assertions": [{"equals": 1}]}))
    assert raised.value.code == "plugin-broken"


@pytest.mark.parametrize(
    ("check", "settings", "inside"),
    [
        ("command_exit", {"command": "x"}, True),
        ("custom", {"script": "a.py", "runs_in": "sandbox"}, True),
        ("custom", {"script": "a.py"}, False),
        ("file_exists", {"path": "a"}, False),
        ("completes", {}, False),
    ],
)
def test_which_checks_run_a_program_inside(check: str, settings: dict[str, str], inside: bool) -> None:
    assert get_traits(Invariant("r", check, settings)).runs_inside is inside


# Rules whose settings hold parameters are judged with the trial's own.


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
