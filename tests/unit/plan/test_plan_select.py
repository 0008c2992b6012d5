from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from golden_words import Golden
from holdfast.errors import UsageError
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import DialogueMessage, Recording, RequestChange, SimulatedUser, Task, Variation
from holdfast.plan import CellKey, Select, build_plan
from holdfast.plan.select import SelectedCell, TaskFilter, build_failed_task, find_positions


def spec(**more: Any) -> Spec:
    rules = (
        Invariant("cite-source", "contains", {"value": "x"}),
        Invariant("no-figures", "contains", {"value": "x"}, when="tool_faults_active"),
    )
    given: dict[str, Any] = {
        "path": "c.yaml",
        "agent": AgentSpec(),
        "tasks": (Task(("one",)), Task(("two",))),
        "scenarios": (Scenario("calm"), Scenario("search-down", (Injection("tool", "search", "error"),))),
        "invariants": rules,
        "cell_rules": ("cite-source", "no-figures"),
        "replicas": 2,
    }
    return Spec(**(given | more))


def test_globs_choose_scenarios_and_rules():
    made = build_plan(spec(), Select(scenarios=("search-*",), invariants=("cite-*",)))
    assert {(t.scenario.name, t.invariant) for t in made.trials} == {("search-down", "cite-source")}
    assert list(made.cells) == [CellKey("cite-source", "search-down", 0)]


def test_selecting_a_part_keeps_the_ids():
    whole = {t.id for t in build_plan(spec()).trials}
    assert {t.id for t in build_plan(spec(), Select(scenarios=("calm",))).trials} < whole


def test_globs_mind_case():
    with pytest.raises(UsageError):
        build_plan(spec(), Select(scenarios=("CALM",)))


def test_a_pattern_that_matches_nothing_names_the_near_miss_and_what_exists(golden: Golden):
    with pytest.raises(UsageError) as caught:
        build_plan(spec(), Select(invariants=("cite-sorce",)))
    assert caught.value.code == "nothing-selected"
    golden(caught.value.hint)


def test_of_many_rules_ten_are_named_and_the_others_counted():
    many = tuple(replace(spec().invariants[0], id=f"rule-{n:02}") for n in range(13))
    with pytest.raises(UsageError) as caught:
        build_plan(replace(spec(), invariants=many), Select(invariants=("xyz",)))
    assert caught.value.hint == f"there are: {', '.join(rule.id for rule in many[:10])} and 3 more"


def test_one_good_pattern_does_not_hide_a_bad_one():
    with pytest.raises(UsageError) as raised:
        build_plan(spec(), Select(scenarios=("calm", "zzz")))
    assert raised.value.code == "nothing-selected"


def test_a_selection_that_leaves_nothing_to_run_is_a_usage_error():
    with pytest.raises(UsageError) as raised:
        build_plan(spec(), Select(scenarios=("calm",), invariants=("no-figures",)))
    assert raised.value.code == "nothing-selected"


def test_a_trial_is_chosen_by_id_or_by_its_beginning():
    whole = build_plan(spec())
    wanted = whole.trials[5]
    for name in (wanted.id, wanted.id[:8], wanted.id[:8].upper()):
        made = build_plan(spec(), Select(trials=(name,)))
        assert list(made.trials) == [wanted]
        assert list(made.cells) == [CellKey("cite-source", "search-down", 0)]
        assert made.count_expected(made.cells[0]) == 1
        assert made.count_by_task(made.cells[0]) == (1, 0)
        assert not made.whole
        assert made.preflight is not None
        assert made.preflight.task == wanted.task


def test_a_shared_trial_that_is_chosen_fills_the_cells_of_all_its_rules():
    shared = spec(cell_rules=())
    wanted = build_plan(shared).trials[-1]
    made = build_plan(shared, Select(trials=(wanted.id,)))
    assert [(key.invariant, made.count_expected(key)) for key in made.cells] == [("cite-source", 1), ("no-figures", 1)]


def test_an_unknown_trial_says_what_ids_depend_on():
    with pytest.raises(UsageError) as caught:
        build_plan(spec(), Select(trials=("ffffffffffff",)))
    assert caught.value.code == "nothing-selected"
    assert "seed" in caught.value.hint


def test_a_beginning_must_be_long_enough_and_name_one_trial():
    with pytest.raises(UsageError) as raised:
        find_positions(["abc"], ["abcdef"])
    assert raised.value.code == "selection-invalid"
    with pytest.raises(UsageError) as caught:
        find_positions(["abcd"], ["abcd01", "abcd02", "ffff00"])
    assert caught.value.code == "selection-invalid"
    assert "abcd01, abcd02" in caught.value.hint
    assert find_positions(["ffff", "abcd01", "ffff0"], ["abcd01", "abcd02", "ffff00"]) == [0, 2]


def test_single_cells_bring_the_trials_that_they_need_with_their_ids():
    wanted = (SelectedCell("cite-source", "calm"), SelectedCell("no-figures", "search-down"))
    made = build_plan(spec(), Select(cells=wanted))
    assert list(made.cells) == [CellKey("cite-source", "calm", 0), CellKey("no-figures", "search-down", 0)]
    assert {(t.scenario.name, t.invariant) for t in made.trials} == {
        ("calm", "cite-source"),
        ("search-down", "no-figures"),
    }
    assert [made.count_expected(key) for key in made.cells] == [4, 4]
    assert {t.id for t in made.trials} < {t.id for t in build_plan(spec()).trials}


def test_single_cells_are_distinguished_by_their_params():
    several = spec(params=({"region": "eu"}, {"region": "us"}))
    made = build_plan(several, Select(cells=(SelectedCell("cite-source", "calm", '{"region":"us"}'),)))
    assert {t.params["region"] for t in made.trials} == {"us"}


def test_a_trial_that_serves_several_rules_is_run_for_one_of_them():
    shared = build_plan(spec(cell_rules=()), Select(cells=(SelectedCell("no-figures", "search-down"),)))
    assert {(t.scenario.name, t.invariant) for t in shared.trials} == {("search-down", "*")}


def _variants() -> list[Task]:
    """Tasks of the same words that are not the same question."""
    request = [Variation("http_header_injection", "Hi", name, request=RequestChange("h", name)) for name in ("a", "b")]
    return [
        Task(("Hi",)),
        *(Task(("Hi",), "mutation", variation=one) for one in request),
        Task(("Hi",), "mutation", variation=Variation("noise", "hi", "case")),
        Task(("Hi",), "replay", recording=Recording("s1")),
        Task(("Hi",), "replay", recording=Recording("s2")),
        Task(("Hi",), context=(DialogueMessage("user", "Before"),)),
        Task(("Hi",), user=SimulatedUser(model="m", goal="g")),
    ]


def test_a_failed_task_is_not_another_task_of_the_same_words() -> None:
    tasks = _variants()
    for failed in tasks:
        kept = TaskFilter(Select(failed=(build_failed_task("r", "s", failed, {}),)))
        assert [task for task in tasks if kept.is_selected("r", "s", task, {})] == [failed]
        assert not kept.is_selected("r", "s", failed, {"a": 1})


def test_a_failed_mutation_is_found_again_with_another_weight() -> None:
    kept = TaskFilter(Select(failed=(build_failed_task("r", "s", _variants()[1], {}),)))
    heavier = Variation("http_header_injection", "Hi", "a", weight=3.0, request=RequestChange("h", "a"))
    assert kept.is_selected("r", "s", Task(("Hi",), "mutation", variation=heavier), {})
