"""Numbers of trials, and where their records lie."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from error_code import has_code
from example_counts import examples
from holdfast.errors import UserError
from holdfast.model.codec import encode
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan, build_plan
from holdfast.store.blobs import LIMIT, LOST, pack
from holdfast.store.index import RunIndex
from holdfast.store.planned import PlannedTrials
from holdfast.store.record import build_record
from holdfast.store.rundir import RunDir
from holdfast.store.stored_records import DAMAGED, StoredRecords


def small(*params: dict[str, Any]) -> Plan:
    agent = AgentSpec(type="python", endpoint="bot:ask")
    rules = (Invariant("a", "completes"), Invariant("b", "completes"))
    tasks, scenarios = (Task(("p",)), Task(("q",))), (Scenario("calm"), Scenario("down"))
    given = params or ({},)
    return build_plan(Spec("x.yaml", agent, tasks=tasks, invariants=rules, scenarios=scenarios, params=given))


def stored(folder: Path, *lines: Observation | Verdict | Trial) -> RunDir:
    names = {Observation: "observations-0.jsonl", Verdict: "verdicts-1.jsonl", Trial: "trials.jsonl"}
    for line in lines:
        with open(folder / names[type(line)], "ab") as file:
            file.write(encode(build_record(line) if isinstance(line, Trial) else line) + b"\n")
    return RunDir(folder)


def seen(trial: Trial, text: str = "hi", error: str = "") -> Observation:
    return Observation(trial.id, (Turn("p", text),), error=error)


def judged(trial: Trial, rule: str, reason: str = "") -> Verdict:
    return Verdict(trial.id, rule, "pass", 1.0, reason)


@contextmanager
def opened(run: RunDir, made: Plan) -> Iterator[StoredRecords]:
    with closing(StoredRecords(run, made, run.get_verdict_file())) as records:
        yield records


# -- numbers ------------------------------------------------------------------------------------
def test_the_last_good_observation_counts_and_a_failure_of_ours_only_without_one(tmp_path: Path) -> None:
    made = small()
    one, two, three = made.trials[:3]
    run = stored(
        tmp_path, one, two, three,
        seen(one, "first"), seen(one, "second"), seen(one, "", "broke"),
        seen(two, "", "broke once"), seen(two, "", "broke twice"),
        seen(three, "", "broke"), seen(three, "mended"),
    )  # fmt: skip
    with opened(run, made) as records:
        said = [found.seen.error or found.seen.turns[0].text for found in records.read_traced()]
    assert said == ["second", "broke twice", "mended"]


def test_of_a_cell_and_of_a_trial_the_last_verdicts_are_found(tmp_path: Path) -> None:
    made = small()
    calm, down = made.trials[0], made.trials[2]
    assert (calm.scenario.name, down.scenario.name) == ("calm", "down")
    verdicts = [judged(calm, "a", "1"), judged(down, "b", "2"), judged(calm, "b", "3"), judged(calm, "a", "4")]
    run = stored(tmp_path, calm, down, seen(calm), seen(down), *verdicts, judged(calm, "gone"))
    with opened(run, made) as records:
        in_cell = {
            (rule, scenario): [
                (trial.id, v.reason) for trial, _, v in records.read_cell(made.get_position(rule, scenario))
            ]
            for rule, scenario in (("a", "calm"), ("b", "down"), ("a", "down"))
        }
        by_trial = [(v.invariant, v.reason) for v in records.read_trial(calm.id).verdicts]
    assert in_cell == {("a", "calm"): [(calm.id, "4")], ("b", "down"): [(down.id, "2")], ("a", "down"): []}
    assert by_trial == [("a", "4"), ("b", "3"), ("gone", "")]


def test_a_trial_that_was_begun_twice_is_one_and_one_never_begun_is_none(tmp_path: Path) -> None:
    made = small()
    one, two, three = made.trials[:3]
    run = stored(tmp_path, one, two, one, seen(two), seen(one), seen(three), judged(three, "a"))
    index = RunIndex(run, made, run.get_verdict_file())
    assert list(index.list_observed()) == [1, 2]
    assert index.find_number(three.id) is None
    assert index.by_cell.list_owned(made.get_position("a", "calm")) == []


def test_a_damaged_record_is_named_and_a_damaged_observation_is_an_error_of_its_trial(tmp_path: Path) -> None:
    made = small()
    one = made.trials[0]
    run = stored(tmp_path, one, judged(one, "a"))
    (tmp_path / "observations-0.jsonl").write_bytes(b'{"trial":"%b","turns":7}\n' % one.id.encode())
    with opened(run, made) as records:
        assert [seen.error for _, seen, _ in records.read_cell(0)] == [DAMAGED]
    (tmp_path / "verdicts-1.jsonl").write_bytes(b'{"trial":"%b","invariant":"a"}\n' % one.id.encode())
    with opened(run, made) as records, pytest.raises(UserError, check=has_code("run-damaged")):
        list(records.read_cell(0))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(60))
def test_records_are_found_as_in_a_dict(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    made = small()
    begun = data.draw(st.lists(st.sampled_from(list(made.trials)), max_size=12))
    some = st.sampled_from(list(made.trials))
    observed = data.draw(
        st.lists(st.builds(seen, some, st.sampled_from("xyz"), st.sampled_from(["", "broke"])), max_size=12)
    )
    verdicts = data.draw(
        st.lists(st.builds(judged, some, st.sampled_from(["a", "b", "gone"]), st.text(max_size=2)), max_size=20)
    )
    run = stored(tmp_path_factory.mktemp("run"), *begun, *observed, *verdicts)
    last = {one.id: number for number, one in enumerate(begun)}
    by_id: dict[str, Observation] = {}
    for one in observed:
        if one.trial not in by_id or by_id[one.trial].error or not one.error:
            by_id[one.trial] = one
    traced = [
        (one, by_id[one.id], {v.invariant: v for v in verdicts if v.trial == one.id})
        for number, one in enumerate(begun)
        if last[one.id] == number and one.id in by_id
    ]
    with opened(run, made) as records:
        assert [(one.trial, one.seen, tuple(one.verdicts)) for one in records.read_traced()] == [
            (trial, observation, tuple(judged.values())) for trial, observation, judged in traced
        ]
        for rule in made.spec.invariants:
            for scenario in made.spec.scenarios:
                cell = {
                    trial.id: found for trial, *found in records.read_cell(made.get_position(rule.id, scenario.name))
                }
                assert cell == {
                    trial.id: [observation, judged[rule.id]]
                    for trial, observation, judged in traced
                    if rule.id in judged and trial.scenario.name == scenario.name
                }


def test_a_value_that_is_lost_is_reported_though_the_trial_was_seen_before(tmp_path: Path) -> None:
    made = small()
    one = made.trials[0]
    run = stored(tmp_path, one, seen(one, "short"), judged(one, "a"))
    with open(tmp_path / "observations-0.jsonl", "ab") as file:
        file.write(pack(seen(one, "long" * LIMIT), tmp_path / "blobs") + b"\n")
    with opened(run, made) as records:
        assert [one.text for _, found, _ in records.read_cell(0) for one in found.turns] == ["long" * LIMIT]
    shutil.rmtree(tmp_path / "blobs")
    with opened(run, made) as records:
        assert [found.error for _, found, _ in records.read_cell(0)] == [LOST]


# -- the plan -----------------------------------------------------------------------------------
def test_a_plan_holds_its_own_trials_and_no_others() -> None:
    made = small()
    planned = PlannedTrials(made)
    assert all(map(planned.has_trial, made.trials))
    one = made.trials[0]
    foreign = [
        ("replica", 1),
        ("scenario", Scenario("down")),
        ("task", Task(("q",))),
        ("invariant", "a"),
        ("id", "a" * 12),
    ]
    for field, value in foreign:
        changed = {name: getattr(one, name) for name in one.__struct_fields__} | {field: value}
        assert not planned.has_trial(Trial(**changed))


def test_params_that_are_equal_but_written_otherwise_are_distinguished() -> None:
    made = small({"flag": 1}, {"flag": True}, {"flag": 1.0})
    planned = PlannedTrials(made)
    assert len({trial.id for trial in made.trials}) == len(made.trials)
    assert all(map(planned.has_trial, made.trials))


def test_an_unknown_scenario_is_refused_each_time() -> None:
    made = small()
    planned = PlannedTrials(made)
    one = made.trials[0]
    assert planned.has_trial(one)
    assert not planned.has_trial(replace(one, scenario=Scenario("nowhere")))
