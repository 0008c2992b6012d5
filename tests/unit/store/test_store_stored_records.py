"""Numbers of trials, and where their records lie."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from error_code import has_code
from example_counts import examples
from holdfast.errors import UserError
from holdfast.model.codec import encode
from holdfast.model.observation import Observation, Turn
from holdfast.model.run import TracedTrial
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan, build_plan
from holdfast.store.blobs import LIMIT, LOST, pack
from holdfast.store.record import build_record
from holdfast.store.rundir import RunDir
from holdfast.store.stored_records import DAMAGED, IdTable, RunRecords


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


def opened(run: RunDir, made: Plan) -> RunRecords:
    return RunRecords(run, made.spec.scenarios)


def read_all(records: RunRecords) -> Iterator[TracedTrial]:
    return map(records.read_traced, filter(records.is_observed, range(len(records.ids))))


def read_cell(records: RunRecords, made: Plan, rule: str = "a", scenario: str = "calm") -> Iterator[Any]:
    return records.read_judged(records.index_cells(made).list_owned(made.get_position(rule, scenario)))


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
    records = opened(run, made)
    said = [found.seen.error or found.seen.turns[0].text for found in read_all(records)]
    assert [number for number, _ in records.iter_observed()] == [0, 1, 2]
    assert said == ["second", "broke twice", "mended"]


def test_of_a_cell_and_of_a_trial_the_last_verdicts_are_found(tmp_path: Path) -> None:
    made = small()
    calm, down = made.trials[0], made.trials[2]
    assert (calm.scenario.name, down.scenario.name) == ("calm", "down")
    verdicts = [judged(calm, "a", "1"), judged(down, "b", "2"), judged(calm, "b", "3"), judged(calm, "a", "4")]
    run = stored(tmp_path, calm, down, seen(calm), seen(down), *verdicts, judged(calm, "gone"))
    records = opened(run, made)
    in_cell = {
        cell: [(trial.id, v.reason) for trial, _, v in read_cell(records, made, *cell)]
        for cell in (("a", "calm"), ("b", "down"), ("a", "down"))
    }
    by_trial = [(v.invariant, v.reason) for v in records.read_verdicts(0).values()]
    assert in_cell == {("a", "calm"): [(calm.id, "4")], ("b", "down"): [(down.id, "2")], ("a", "down"): []}
    assert by_trial == [("a", "4"), ("b", "3"), ("gone", "")]


def test_a_trial_that_was_begun_twice_is_one_and_one_never_begun_is_none(tmp_path: Path) -> None:
    made = small()
    one, two, three = made.trials[:3]
    run = stored(tmp_path, one, two, one, seen(two), seen(one), seen(three), judged(three, "a"))
    records = opened(run, made)
    assert [(number, trial.id) for number, trial in records.iter_trials()] == [(1, two.id), (2, one.id)]
    assert list(map(records.is_observed, range(3))) == [False, True, True]
    assert records.ids.find(three.id) is None
    assert list(read_cell(records, made)) == []


def test_a_damaged_record_is_named_and_a_damaged_observation_is_an_error_of_its_trial(tmp_path: Path) -> None:
    made = small()
    one = made.trials[0]
    run = stored(tmp_path, one, judged(one, "a"))
    (tmp_path / "observations-0.jsonl").write_bytes(b'{"trial":"%b","turns":7}\n' % one.id.encode())
    assert [seen.error for _, seen, _ in read_cell(opened(run, made), made)] == [DAMAGED]
    (tmp_path / "verdicts-1.jsonl").write_bytes(b'{"trial":"%b","invariant":"a"}\n' % one.id.encode())
    with pytest.raises(UserError, check=has_code("run-damaged")):
        list(read_cell(opened(run, made), made))


def test_lines_that_another_program_adds_to_a_running_run_are_passed_over(tmp_path: Path) -> None:
    made = small()
    one, two = made.trials[:2]
    run = stored(tmp_path, one, seen(one), judged(one, "a"))
    for path in tmp_path.iterdir():
        path.write_bytes(b'{"trial":"no such","x":\xff}\n' + path.read_bytes() + b"not json\n{}\n")
    stored(tmp_path, two, seen(two), judged(two, "a"))
    records = RunRecords(run, made.spec.scenarios, lenient=True)
    assert [trial.id for trial, _, _ in read_cell(records, made)] == [one.id, two.id]


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
    records = opened(run, made)
    assert [(one.trial, one.seen, tuple(one.verdicts)) for one in read_all(records)] == [
        (trial, observation, tuple(judged.values())) for trial, observation, judged in traced
    ]
    assert {records.read_trial(number).id for number, _ in records.iter_observed()} == {one.id for one, *_ in traced}
    for rule in made.spec.invariants:
        for scenario in made.spec.scenarios:
            assert {trial.id: found for trial, *found in read_cell(records, made, rule.id, scenario.name)} == {
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
    assert [one.text for _, found, _ in read_cell(opened(run, made), made) for one in found.turns] == ["long" * LIMIT]
    shutil.rmtree(tmp_path / "blobs")
    assert [found.error for _, found, _ in read_cell(opened(run, made), made)] == [LOST]


ids = st.lists(st.sampled_from(["%012x" % (n * 0x9E3779B97F4A % 2**48) for n in range(40)]), max_size=80)


@given(ids, ids)
def test_an_id_has_its_last_number_in_whatever_order_it_is_asked_for(known: list[str], asked: list[str]) -> None:
    table = IdTable(known)
    numbers = {id: number for number, id in enumerate(known)}
    assert [table.find(id) for id in (*asked, *known)] == [numbers.get(id) for id in (*asked, *known)]
    assert len(table) == len(known)


def test_what_is_no_id_is_never_found() -> None:
    odd = ["", "xyz", "0123456789AB", "0123456789abc", "0x0123456789", " 123456789ab", "1_23456789ab"]
    table = IdTable([*odd, "0123456789ab"])
    assert [table.find(id) for id in odd] == [None] * len(odd)
    assert table.find("0123456789ab") == len(odd)
