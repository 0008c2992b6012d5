from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from golden_words import Golden
from holdfast.cli.options import build_run_options
from holdfast.cli.run import run
from holdfast.errors import UsageError
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import DialogueMessage, Recording, RequestChange, SimulatedUser, Task, Variation
from holdfast.plan import CellKey, RunOptions, Select, build_plan
from holdfast.plan.options import SETTLED, VERDICT
from holdfast.plan.select import SelectedCell, Shard, TaskFilter, build_failed_task, find_positions, parse_keywords


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
    assert caught.value.hint == f"available: {', '.join(rule.id for rule in many[:10])} and 3 more"


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


# -k: words, and, or, not, as pytest's users know them.


NAMES = ("always-cite-source", "search-down", "What was ACME's revenue?")


def test_expressions() -> None:
    for expression, fits in [
        ("cite", True),
        ("CITE", True),
        ("cite and down", True),
        ("cite and calm", False),
        ("calm or down", True),
        ("not calm", True),
        ("not (calm or down)", False),
        ("calm or down and not cite", False),
        ("(calm or down) and cite", True),
        ("not not cite", True),
        ("'was acme'", True),
        ('"revenue?" and search-down', True),
        ("android", False),
        ("notary or cite", True),
    ]:
        assert parse_keywords(expression)(NAMES) is fits, (expression, fits)


@pytest.mark.parametrize("expression", ["and", "cite and", "(cite", "cite)", "not", "cite down", "'cite", "()", "   "])
def test_what_cannot_be_read_is_refused(expression: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_keywords(expression)
    assert raised.value.code == "selection-invalid"


# What a run was begun with, and what may be asked of it later.


BEGUN = RunOptions(
    Select(("d*",)), replicas=3, seed=7, min_score=40.0, strict=True, replay=Path("/tmp/calls"), keep=True
)


def test_what_is_run_stays_and_what_counts_as_held_may_be_asked_again() -> None:
    now = RunOptions(min_score=90.0, max_errors=1, concurrency=4)
    assert BEGUN.merge_resumed(now) == RunOptions(
        Select(("d*",)), replicas=3, seed=7, min_score=90.0, strict=True, max_errors=1, concurrency=4,
        replay=Path("/tmp/calls"),
    )  # fmt: skip


def test_a_settled_option_that_is_given_otherwise_is_named() -> None:
    for now, flag in [
        (RunOptions(), ""),
        (RunOptions(Select(("d*",)), replicas=3, seed=7, replay=Path("/tmp/../tmp/calls")), ""),
        (RunOptions(concurrency=9, min_score=1.0, fail_fast=True, keep=True, record=Path("x")), ""),
        (RunOptions(Select(("e*",))), "--scenario"),
        (RunOptions(Select((), ("r",))), "--invariant"),
        (RunOptions(Select((), (), ("abcd",))), "--trial"),
        (RunOptions(Select(shard=Shard(1, 2))), "--shard"),
        (RunOptions(replicas=4), "--replicas"),
        (RunOptions(seed=8), "--seed"),
        (RunOptions(profile="x"), "--profile"),
        (RunOptions(backend="docker"), "--backend"),
        (RunOptions(replay=Path("/tmp/others")), "--replay"),
    ]:
        assert BEGUN.find_changed_option(now) == flag, (now, flag)


def test_every_option_is_a_flag_and_every_flag_an_option() -> None:
    shown = {"config", "resume", "force", "outputs", "otlp", "as_json", "quiet", "verbose", "dry_run", "no_report"}
    shown |= {"file", "last_failed", "annotations", "cached"}
    context = run.make_context("run", [])
    chaos = {"chaos": False, "chaos_profile": None}  # of `holdfast run` alone
    chaos |= {"sessions": None, "live": False}  # of `holdfast replay run` alone
    flags = {name: value for name, value in context.params.items() if name not in shown} | chaos
    assert build_run_options(**flags) == RunOptions()
    spelled = {
        "scenarios": "select",
        "invariants": "select",
        "trials": "select",
        "keywords": "select",
        "shard": "select",
        "no_preflight": "preflight",
    }
    fields = {spelled.get(str(name), str(name)) for name in flags}
    assert fields | {"part", "hunt"} == set(RunOptions.__struct_fields__)
    assert not set(SETTLED) & set(VERDICT)
    assert {*SETTLED, *VERDICT} < set(RunOptions.__struct_fields__)
