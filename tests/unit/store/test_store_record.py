"""Verdicts are written in groups; trials and observations are with the kernel when they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import HarnessError
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.store.lines import compute_seal
from holdfast.store.record import (
    GROUP,
    RunRecord,
    build_record,
    read_observations,
    read_scenarios,
    read_trials,
    read_verdicts,
)
from holdfast.store.rundir import RunDir, list_record_files

CALM = Scenario("calm")


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir.create(tmp_path)


def verdict(n: int) -> Verdict:
    return Verdict(f"{n:012x}", "rule", "pass", 1.0, "fine")


def written(run: RunDir) -> list[Verdict]:
    return list(read_verdicts(run.get_verdict_file()))


def test_trials_and_observations_are_on_disk_at_once(run: RunDir) -> None:
    record = RunRecord(run, (CALM,))
    known = [Trial(f"{n:012x}", "contract", CALM, Task(("hi",))) for n in range(3)]
    record.write_trials(known)
    record.write_observation(Observation(known[0].id, (Turn("hi", "answer"),)))
    assert list(read_trials(run)) == list(map(build_record, known))
    assert not run.get_scenario_file().exists()
    assert [seen.trial for seen in read_observations(run)] == [known[0].id]
    record.close()


def test_a_scenario_that_the_spec_does_not_have_is_stored_once(run: RunDir) -> None:
    record = RunRecord(run, (CALM,))
    invented = Scenario("hunt-1", (Injection("tool", "search", "error"),))
    known = [
        Trial(f"{n:012x}", "contract", one, Task(("hi",))) for n, one in enumerate((CALM, invented, CALM, invented))
    ]
    record.write_trials(known[:2])
    record.write_trials(known[2:])
    sealed, _ = record.seal()
    record.close()
    scenarios = read_scenarios(run, (CALM,))
    assert [one.build_trial(scenarios) for one in read_trials(run)] == known
    assert sealed["scenarios.jsonl"].lines == 1
    assert run.get_scenario_file() in list_record_files(run)


def test_two_scenarios_of_one_name_are_refused(run: RunDir) -> None:
    record = RunRecord(run, (CALM,))
    other = Scenario("calm", (Injection("tool", "search", "error"),))
    with pytest.raises(HarnessError):
        record.write_trials([Trial("0" * 12, "contract", other, Task(("hi",)))])
    record.close()


def test_verdicts_wait_for_a_group_or_a_flush(run: RunDir) -> None:
    record = RunRecord(run)
    assert record.queue_verdicts([verdict(0)])
    assert not record.queue_verdicts([verdict(1)])
    assert written(run) == []
    record.flush()
    assert written(run) == [verdict(0), verdict(1)]
    assert not record.queue_verdicts([verdict(n) for n in range(GROUP)])
    assert len(written(run)) == 2 + GROUP
    record.flush()
    assert len(written(run)) == 2 + GROUP
    record.close()


def test_a_seal_is_of_all_verdicts(run: RunDir) -> None:
    record = RunRecord(run)
    record.queue_verdicts([verdict(0), verdict(1)])
    sealed, said = record.seal()
    record.close()
    assert said == ()
    assert sealed["verdicts-1.jsonl"].lines == 2
    assert sealed["verdicts-1.jsonl"] == compute_seal(run.get_verdict_file())


def test_a_group_that_could_not_be_written_is_not_tried_again(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    record = RunRecord(run)
    record.queue_verdicts([verdict(0)])
    with monkeypatch.context() as full:
        full.setattr("os.write", _no_space)
        with pytest.raises(OSError, match="No space"):
            record.flush()
    record.queue_verdicts([verdict(1)])
    record.flush()
    record.close()
    assert written(run) == [verdict(1)]


def _no_space(fd: int, data: bytes) -> int:
    raise OSError(28, "No space left on device")


def test_a_verdict_with_half_of_a_character_is_stored_without_it(run: RunDir) -> None:
    record = RunRecord(run)
    record.queue_verdicts([verdict(0), Verdict("0", "rule", "fail", 0.0, "a\ud83d")])
    record.flush()
    record.close()
    assert [one.reason for one in written(run)] == ["fine", "a\ufffd"]
