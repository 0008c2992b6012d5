from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from holdfast import plugins
from holdfast.errors import PluginError
from holdfast.model.scenario import Injection, Position, Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import RequestChange, Task, Variation
from holdfast.model.traits import CheckTraits
from holdfast.model.trial import CONTROL
from holdfast.model.verdict import Finding
from holdfast.plan import CellKey, Select, build_plan, make_check
from holdfast.protocols.check import Exhibit


@dataclass(frozen=True)
class Has:
    words: tuple[str, ...] = ()
    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="text")

    def decide(self, exhibit: Exhibit) -> Finding:
        return Finding(True, "there")


@dataclass(frozen=True)
class LikeCalm(Has):
    baseline: str = "auto"

    def configured(self) -> CheckTraits:
        return replace(self.traits, needs_control=self.baseline == "auto")


@pytest.fixture(autouse=True)
def _fakes(monkeypatch):
    fakes = {"has": Has, "like_calm": LikeCalm}
    monkeypatch.setattr(plugins, "find", lambda family, name: fakes.get(name) if family == "checks" else None)


TOOL = Scenario("tool-down", (Injection("tool", "search", "error"),))
LLM = Scenario("llm-degraded", (Injection("llm", "*", "empty"),))
CALM = Scenario("no-chaos")


def spec(*rules: Invariant, cell: bool = True, **more: Any) -> Spec:
    given: dict[str, Any] = {
        "path": "c.yaml",
        "agent": AgentSpec(type="python", endpoint="agent:run"),
        "tasks": (Task(("one",)), Task(("two",))),
        "scenarios": (CALM, TOOL),
        "invariants": rules,
        "cell_rules": tuple(r.id for r in rules) if cell else (),
        "seed": 7,
    }
    return Spec(**(given | more))


def told(trials):
    return [(t.scenario.name, t.invariant, t.task.prompt, t.replica) for t in trials]


def test_cell_isolation_has_a_trial_per_rule_scenario_prompt_and_replica():
    made = build_plan(spec(Invariant("a", "has"), Invariant("b", "has"), replicas=2))
    expected = [
        (s, r, q, n) for s in ("no-chaos", "tool-down") for r in ("a", "b") for q in ("one", "two") for n in (0, 1)
    ]
    assert told(made.trials) == expected
    assert len({t.id for t in made.trials}) == len(expected) == len(made.trials)
    assert {t.seed for t in made.trials} == {7}


def test_scenario_isolation_shares_a_trial_between_rules():
    made = build_plan(spec(Invariant("a", "has"), Invariant("b", "has"), cell=False))
    assert told(made.trials) == [(s, "*", q, 0) for s in ("no-chaos", "tool-down") for q in ("one", "two")]
    assert [r.id for r in made.get_rules(made.trials[0])] == ["a", "b"]


def test_a_rule_with_probes_has_trials_of_its_own_and_asks_only_its_probes():
    made = build_plan(
        spec(Invariant("a", "has"), Invariant("p", "has", probes=("leak?",)), cell=False, scenarios=(CALM,))
    )
    assert told(made.trials) == [
        ("no-chaos", "*", "one", 0),
        ("no-chaos", "*", "two", 0),
        ("no-chaos", "p", "leak?", 0),
    ]
    assert made.trials[2].task.kind == "probe"
    assert [r.id for r in made.get_rules(made.trials[0])] == ["a"]
    assert [r.id for r in made.get_rules(made.trials[2])] == ["p"]
    assert made.get_tasks("p") == (Task(("leak?",), "probe"),)


def test_no_trial_is_planned_where_when_is_not_met():
    made = build_plan(spec(Invariant("t", "has", when="tool_faults_active"), scenarios=(CALM, TOOL, LLM)))
    assert {t.scenario.name for t in made.trials} == {"tool-down"}
    assert list(made.cells) == [CellKey("t", s, 0) for s in ("no-chaos", "tool-down", "llm-degraded")]
    assert [made.count_expected(key) for key in made.cells] == [0, 2, 0]


def test_shared_trials_serve_only_the_rules_that_apply():
    rules = Invariant("t", "has", when="tool_faults_active"), Invariant("n", "has", when="no_chaos")
    made = build_plan(spec(*rules, cell=False))
    assert [[r.id for r in made.get_rules(t)] for t in made.trials] == [["n"], ["n"], ["t"], ["t"]]


def test_expected_verdicts_of_a_cell_are_prompts_times_replicas_per_params():
    made = build_plan(spec(Invariant("a", "has"), replicas=3, params=({"m": "x"}, {"m": "y"})))
    assert [made.count_expected(key) for key in made.cells] == [6] * 4
    assert len(made.trials) == sum(made.count_expected(key) for key in made.cells)
    assert made.count_by_task(made.cells[0]) == (3, 3)


def test_order_is_prompt_then_params_then_replica():
    made = build_plan(spec(Invariant("a", "has"), replicas=2, params=({"m": 1}, {"m": 2}), scenarios=(CALM,)))
    assert [(t.task.prompt, t.params["m"], t.replica) for t in made.trials][:5] == [
        ("one", 1, 0),
        ("one", 1, 1),
        ("one", 2, 0),
        ("one", 2, 1),
        ("two", 1, 0),
    ]
    assert [made.get_params_index(t.params) for t in made.trials][:4] == [0, 0, 1, 1]


def test_trials_are_lazy_and_can_be_sliced():
    made = build_plan(spec(Invariant("a", "has"), replicas=1_000_000))
    assert len(made.trials) == 4_000_000
    assert made.trials[-1].replica == 999_999
    assert [t.replica for t in made.trials[1_000_000:][:2]] == [0, 1]
    with pytest.raises(IndexError):
        made.trials[4_000_000]


def test_a_prompt_written_twice_is_asked_once():
    made = build_plan(spec(Invariant("a", "has"), tasks=(Task(("one",)), Task(("one",))), scenarios=(CALM,)))
    assert told(made.trials) == [("no-chaos", "a", "one", 0)]
    assert made.count_expected(made.cells[0]) == 1


def test_params_written_twice_are_run_once():
    made = build_plan(spec(Invariant("a", "has"), params=({"m": 1}, {"m": True}, {"m": 1}), scenarios=(CALM,)))
    assert list(made.cells) == [CellKey("a", "no-chaos", 0), CellKey("a", "no-chaos", 1)]
    assert len({t.id for t in made.trials}) == len(made.trials) == 4


def test_a_cells_position_and_key_are_inverse():
    made = build_plan(spec(Invariant("a", "has"), Invariant("b", "has"), params=({"m": 1}, {"m": 2})))
    assert [made.get_position(*key) for key in made.cells] == list(range(8))
    assert [made.get_key(i) for i in range(8)] == list(made.cells)


def test_one_control_per_prompt_only_where_a_check_needs_it():
    compares = Invariant("same", "like_calm", when="tool_faults_active")
    made = build_plan(spec(Invariant("a", "has"), compares))
    assert [(t.kind, t.scenario.name, t.task.prompt, t.invariant) for t in made.controls] == [
        ("control", CONTROL.name, "one", "*"),
        ("control", CONTROL.name, "two", "*"),
    ]
    assert made.get_control(made.trials[0]) == made.controls[0]
    assert made.get_rules(made.controls[0]) == ()
    manual = Invariant("same", "like_calm", {"baseline": "x"})
    assert build_plan(spec(manual)).controls == ()
    assert build_plan(spec(compares, scenarios=(CALM,))).controls == ()


def test_the_preflight_is_the_control_of_the_first_task_and_is_reused():
    made = build_plan(spec(Invariant("same", "like_calm")))
    assert made.preflight == made.controls[0]
    alone = build_plan(spec(Invariant("a", "has")))
    assert alone.controls == ()
    assert alone.preflight is not None
    assert alone.preflight.id == made.preflight.id
    assert build_plan(spec(Invariant("a", "has", when="llm_faults_active"))).preflight is None


def test_ids_change_with_what_decides_a_trial_and_with_nothing_else():
    rule = Invariant("a", "has")
    base = spec(rule)
    first = build_plan(base).trials[0].id
    moved = replace(base.agent, position=Position(9))
    assert build_plan(replace(base, agent=moved, path="other.yaml")).trials[0].id == first
    assert build_plan(replace(base, scenarios=(replace(CALM, position=Position(3)), TOOL))).trials[0].id == first
    for changed in (
        replace(base, seed=8),
        replace(base, agent=replace(base.agent, endpoint="agent:other")),
        replace(base, tasks=(Task(("three",)),)),
        replace(base, tasks=(Task(("one",), "task"),)),
        replace(base, cell_rules=()),
        replace(base, params=({"m": 1},)),
        replace(base, scenarios=(TOOL,)),
    ):
        assert build_plan(changed).trials[0].id != first


def test_an_id_is_twelve_digits_of_blake2b_over_the_written_out_json():
    written = (
        b'["contract",["no-chaos",[]],{"kind":"golden","turns":["one"]},{},0,"a",'
        b'{"endpoint":"agent:run","type":"python"},7]'
    )
    assert build_plan(spec(Invariant("a", "has"))).trials[0].id == blake2b(written, digest_size=6).hexdigest()


def test_lists_in_settings_become_tuples():
    assert make_check(Invariant("a", "has", {"words": ["x", "y"]})) == Has(("x", "y"))


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (Invariant("a", "nothing_like_it"), "no check called 'nothing_like_it'"),
        (Invariant("a", "has", {"wrods": []}), "'has' of rule a: .*wrods"),
    ],
)
def test_a_check_that_cannot_be_built_says_which_rule(rule, says):
    with pytest.raises(PluginError, match=says):
        make_check(rule)


@pytest.mark.parametrize(("rule", "controls"), [("a", 0), ("same", 1)])
def test_a_trial_by_its_id_has_a_control_only_if_its_own_rule_compares(rule, controls):
    made = spec(Invariant("a", "has"), Invariant("same", "like_calm"))
    (one, *_) = [trial.id for trial in build_plan(made).trials if trial.invariant == rule]
    assert len(build_plan(made, Select(trials=(one,))).controls) == controls


def test_a_mutation_run_asks_the_golden_prompt_first():
    mutated = Task(("oen", "and then?"), "mutation", Variation("noise", "one\nand then?"))
    attack = Task(("hello", "do it"), "mutation", Variation("multi_turn_attack", "one", attack=True))
    for task, asked in ((mutated, ("one", "and then?")), (attack, ("one",))):
        first = build_plan(replace(spec(Invariant("a", "has")), tasks=(task,))).preflight
        assert first is not None
        assert first.task == Task(asked)


@pytest.mark.parametrize("type", ["like_calm", "has"])
def test_a_mutation_of_the_request_is_compared_with_the_plain_request_of_its_prompt(type: str):
    changes = [Variation("payload_size_attack", p, request=RequestChange("k", v)) for p in ("one", "two") for v in "ab"]
    tasks = tuple(Task((change.source,), "mutation", change) for change in changes)
    made = build_plan(replace(spec(Invariant("a", type), Invariant("b", "has")), tasks=tasks))
    assert [control.task for control in made.controls] == [Task(("one",)), Task(("two",))]
    compared = [made.get_control(trial) for trial in made.trials if trial.task.prompt == "two"]
    assert compared == [made.controls[1]] * len(compared)
