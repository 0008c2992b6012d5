"""A stored run read back: what need not run again, what is left, what was never judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import build_plan
from holdfast.score import Tally
from holdfast.store.record import RunRecord
from holdfast.store.replay import StoredRun, replay_verdicts
from holdfast.store.rundir import RunDir
from holdfast.store.stored_records import RunRecords

SPEC = Spec(
    path="c.yaml",
    agent=AgentSpec(),
    tasks=tuple(Task((f"q{n}",)) for n in range(6)),
    scenarios=(Scenario("calm"),),
    invariants=(Invariant("a", "contains", {"value": "x"}), Invariant("b", "contains", {"value": "y"})),
)
PLAN = build_plan(SPEC)
TRIALS = tuple(PLAN.trials)


def seen(trial: Trial, **more: str) -> Observation:
    return Observation(trial.id, (Turn("q", "x"),), **more)  # type: ignore[arg-type]


def given(trial: Trial, outcome: str = "pass", rules: Sequence[str] = "ab") -> list[Verdict]:
    return [Verdict(trial.id, rule, outcome, 1.0, outcome) for rule in rules]  # type: ignore[arg-type]


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., tuple[StoredRun, Tally]]:
    def stored(
        observations: Sequence[Observation],
        verdicts: Sequence[Verdict],
        begun: Sequence[Trial] = TRIALS,
        *,
        keep_errors: bool = False,
    ) -> tuple[StoredRun, Tally]:
        run = RunDir.create(tmp_path)
        record = RunRecord(run)
        record.write_trials(begun)
        for one in observations:
            record.write_observation(one)
        record.queue_verdicts(verdicts)
        record.flush()
        record.close()
        tally = Tally(SPEC, PLAN)
        return replay_verdicts(RunRecords(run), PLAN, tally, keep_errors=keep_errors), tally

    return stored


def test_what_was_judged_is_added_and_the_rest_is_left_in_order(stored) -> None:
    done = (TRIALS[4], TRIALS[1])
    found, tally = stored([seen(t) for t in done], [v for t in done for v in given(t)])
    assert (found.done, list(found.left)) == (2, [TRIALS[0], TRIALS[2], TRIALS[3], TRIALS[5]])
    assert tally.trials == 2
    assert [cell.passes for cell in tally.iter_cells()] == [2, 2]


def test_a_trial_without_all_of_its_verdicts_is_seen_and_not_judged(stored) -> None:
    found, tally = stored([seen(t) for t in TRIALS[:3]], [*given(TRIALS[0]), *given(TRIALS[2], rules="b")])
    assert (found.done, len(found.left), tally.trials) == (3, 3, 1)
    assert list(found.unjudged) == [(TRIALS[1], seen(TRIALS[1])), (TRIALS[2], seen(TRIALS[2]))]


def test_one_that_our_side_broke_runs_again_and_its_better_run_counts(stored) -> None:
    broken = seen(TRIALS[0], error="gone")
    found, tally = stored(
        [broken, seen(TRIALS[1], error="gone")], given(TRIALS[0], "error") + given(TRIALS[1], "error")
    )
    assert (found.done, tally.trials) == (0, 0)
    again = given(TRIALS[0], "error") + given(TRIALS[0])
    found, tally = stored([broken, seen(TRIALS[0])], again)
    assert (found.done, next(tally.iter_cells()).passes) == (1, 1)


def test_as_it_ended_a_broken_trial_counts_as_an_error(stored) -> None:
    observations = [seen(TRIALS[0], error="gone"), seen(TRIALS[0], error="gone again"), seen(TRIALS[1])]
    verdicts = given(TRIALS[0], "error") + given(TRIALS[1])
    found, tally = stored(observations, verdicts, keep_errors=True)
    assert (found.done, tally.trials) == (2, 2)
    assert [(cell.errors, cell.passes) for cell in tally.iter_cells()] == [(1, 1), (1, 1)]


def test_what_was_never_begun_or_is_of_another_plan_is_passed_over(stored) -> None:
    other = Trial("0123456789ab", "contract", Scenario("calm"), Task(("other",)))
    found, tally = stored(
        [seen(TRIALS[0]), seen(other), seen(TRIALS[1])], given(TRIALS[0]) + given(other) + given(TRIALS[1]),
        (TRIALS[0], other),
    )  # fmt: skip
    assert (found.done, tally.trials) == (1, 1)
    assert TRIALS[1] in list(found.left)
    assert found.foreign == {other.id}


def test_a_new_run_has_everything_left(tmp_path: Path) -> None:
    found = replay_verdicts(RunRecords(RunDir.create(tmp_path)), PLAN, Tally(SPEC, PLAN))
    assert (found.done, found.left, list(found.unjudged)) == (0, PLAN.trials, [])
