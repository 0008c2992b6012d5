"""What an observation goes through: which verdicts are on disk when, and who hears of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.model import events
from holdfast.model.observation import Observation, Turn
from holdfast.model.spec import AgentSpec, Invariant, Scenario, Spec, Task
from holdfast.runner.intake import Intake
from holdfast.runner.job import Job, RunOptions
from holdfast.store.record import verdicts
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
            assert intake.take_at_once(trial, seen, alone=True)
            counts.append(len(list(verdicts(run.verdicts()))))
        await asyncio.sleep(0)
        counts.append(len(list(verdicts(run.verdicts()))))
        intake.close()

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
