from __future__ import annotations

import pytest

from holdfast.model.judged import JudgingProgress
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan import FailFastPlanner, OncePlanner, RoundsPlanner

TRIALS = [Trial(f"{i:012x}", "contract", Scenario("s"), Task(("q",)), replica=i) for i in range(5)]


def test_once_answers_everything_then_nothing():
    once = OncePlanner(TRIALS)
    assert once.next(JudgingProgress()) is TRIALS
    assert not once.next(JudgingProgress(done=5))
    assert not once.next(JudgingProgress(done=5, failed=True))


def test_fail_fast_answers_slices_until_one_fails():
    planner = FailFastPlanner(TRIALS, width=2)
    assert list(planner.next(JudgingProgress())) == TRIALS[:2]
    assert list(planner.next(JudgingProgress(done=2))) == TRIALS[2:4]
    assert list(planner.next(JudgingProgress(done=4))) == TRIALS[4:]
    assert not planner.next(JudgingProgress(done=5))
    assert not planner.next(JudgingProgress(done=2, failed=True))


def test_planners_are_pure():
    planner = FailFastPlanner(TRIALS, width=3)
    assert list(planner.next(JudgingProgress(done=3))) == list(planner.next(JudgingProgress(done=3)))


def test_fail_fast_refuses_a_width_that_never_ends():
    with pytest.raises(ValueError, match="at least 1"):
        FailFastPlanner(TRIALS, width=0)


def test_rounds_ask_a_replica_of_all_that_is_open_before_the_next():
    trials = [Trial(f"{task}{n}", "contract", Scenario("calm"), Task((task,)), n) for task in "ab" for n in range(3)]
    closed: set[str] = set()
    rounds = RoundsPlanner(trials, lambda trial: trial.task.prompt not in closed)
    assert [trial.id for trial in rounds.next(JudgingProgress())] == ["a0", "b0"]
    closed.add("a")
    assert [trial.id for trial in rounds.next(JudgingProgress(2, True))] == ["b1"]
    closed.add("b")
    assert list(rounds.next(JudgingProgress(3))) == []


def test_rounds_of_a_run_that_was_resumed_fill_the_gaps():
    trials = [Trial(f"a{n}", "contract", Scenario("calm"), Task(("a",)), n) for n in (1, 4)]
    rounds = RoundsPlanner(trials, lambda trial: True)
    assert [[trial.id for trial in rounds.next(JudgingProgress())] for _ in range(3)] == [["a1"], ["a4"], []]


def test_rounds_stop_after_the_one_that_lost_the_run():
    trials = [Trial(f"a{n}", "contract", Scenario("calm"), Task(("a",)), n) for n in range(3)]
    rounds = RoundsPlanner(trials, lambda trial: True, fail_fast=True)
    assert len(rounds.next(JudgingProgress())) == 1
    assert list(rounds.next(JudgingProgress(1, True))) == []
