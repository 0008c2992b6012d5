"""What an observation goes through: which verdicts are on disk when, and who hears of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.model import events
from holdfast.model.codec import HALVES
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trace import TraceEvent
from holdfast.plan import RunOptions
from holdfast.runner.intake import Intake
from holdfast.runner.job import Job
from holdfast.store.record import read_observations, read_verdicts
from holdfast.store.rundir import RunDir

SECRET = "hunter2-hunter2"


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    (tmp_path / "c.yaml").write_text("{}")
    rule = Invariant("says", "contains", {"value": "fine"})
    return Spec(
        path=str(tmp_path / "c.yaml"),
        agent=AgentSpec(),
        tasks=tuple(Task((f"q{n}",)) for n in range(3)),
        scenarios=(Scenario("calm"),),
        invariants=(rule,),
        cell_rules=("says",),
    )


def taken(spec: Spec, tmp_path: Path, texts: list[str], **more: bool) -> tuple[list[int], list[events.Event]]:
    """How many verdicts were on disk after each answer and after the loop had a moment; what was heard."""
    heard: list[events.Event] = []
    counts = []

    async def go() -> None:
        run = RunDir.create(tmp_path / "runs")
        job = Job(spec, RunOptions(), {})
        job.secrets["key"] = SECRET
        intake = Intake(job, run, heard.append, **more)
        for trial, text in zip(job.plan.trials, texts, strict=False):
            seen = Observation(trial.id, (Turn(trial.task.prompt, text),))
            intake.store(trial, seen)
            await intake.judge(trial, seen, alone=True)
            counts.append(len(list(read_verdicts(run.get_verdict_file()))))
        await asyncio.sleep(0)
        counts.append(len(list(read_verdicts(run.get_verdict_file()))))
        intake.record.close()

    asyncio.run(go())
    return counts, heard


def test_verdicts_are_written_when_the_loop_has_a_moment(spec: Spec, tmp_path: Path) -> None:
    counts, _ = taken(spec, tmp_path, ["fine", "fine"])
    assert counts == [0, 0, 2]


def test_a_verdict_that_could_not_be_given_again_is_written_at_once(spec: Spec, tmp_path: Path) -> None:
    counts, _ = taken(spec, tmp_path, ["fine", f"fine: {SECRET}", "fine"])
    assert counts == [0, 2, 2, 3]


def test_a_listener_hears_of_every_trial_or_of_none(spec: Spec, tmp_path: Path) -> None:
    _, heard = taken(spec, tmp_path, ["fine"] * 3)
    kinds = [type(event) for event in heard]
    assert kinds == [events.TrialEnded, events.VerdictGiven] * 2 + [
        events.TrialEnded, events.VerdictGiven, events.CellDecided,
    ]  # fmt: skip
    _, heard = taken(spec, tmp_path, ["fine"] * 3, each_trial=False)
    assert heard == []


HALF = "\ud83d"


def test_halves_of_characters_are_replaced_once_noted_and_judged_as_they_are_stored(spec: Spec, tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "runs")
    job = Job(spec, RunOptions(), {})
    intake = Intake(job, run, lambda event: None)
    first, second, third = job.plan.trials
    event = TraceEvent(0.1, "tool_call", "look", "tool", 1, input=f"a{HALF}")
    cases = {
        first.id: Observation(first.id, (Turn("q", f"fine {HALF}"),)),
        second.id: Observation(second.id, (Turn("q", "fine"),), trace=(event,)),
        third.id: Observation(third.id, (Turn("q", "fine"),), trace=(event,), notes=(HALVES,)),
    }
    intake.record_event(second, event)
    kept = {trial.id: intake.store(trial, cases[trial.id]) for trial in job.plan.trials}
    assert kept[first.id].turns[0].text == "fine \ufffd"
    assert kept[second.id].trace[0].input == kept[third.id].trace[0].input == "a\ufffd"
    assert all(seen.notes == (HALVES,) for seen in kept.values())
    assert {seen.trial: seen for seen in read_observations(run)} == kept
    intake.record.close()


def test_a_secret_in_two_halves_is_masked(spec: Spec, tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "runs")
    job = Job(spec, RunOptions(), {})
    job.secrets["key"] = "pass\U0001f600word"
    intake = Intake(job, run, lambda event: None)
    trial = job.plan.trials[0]
    intake.store(trial, Observation(trial.id, (Turn("q", "it is pass\ud83d\ude00word"),)))
    intake.store_control(job.plan.preflight, Observation(job.plan.preflight.id, (Turn("q", "pass\ud83d\ude00word"),)))
    intake.record.close()
    texts = [seen.turns[0].text for seen in read_observations(run)]
    assert texts == ["it is [masked]", "[masked]"]
