from __future__ import annotations

from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan import RunOptions
from holdfast.runner.run import Budget

TRIALS = [Trial(str(n), "contract", Scenario("calm"), Task(("q",)), n) for n in range(5)]


def let_through(options: RunOptions, *, done: int = 0, price: float = 0.0, takes_s: float = 0.0) -> tuple[int, str]:
    """How many of five trials begin, and what ended it, where each costs and takes so much."""
    state = {"spent": 0.0, "now": 100.0}
    budget = Budget(options, done, lambda: state["spent"], lambda: state["now"])
    count = 0
    for _ in budget.limit_trials(TRIALS):
        count += 1
        state["spent"] += price
        state["now"] += takes_s
    return count, budget.ended_by


def test_without_a_budget_all_go_through():
    assert let_through(RunOptions(), price=9.0, takes_s=9.0) == (5, "")


def test_trials_that_are_stored_already_count():
    assert let_through(RunOptions(max_trials=3)) == (3, "--max-trials 3")
    assert let_through(RunOptions(max_trials=3), done=2) == (1, "--max-trials 3")
    assert let_through(RunOptions(max_trials=5)) == (5, "")


def test_money_ends_it_once_it_is_spent():
    assert let_through(RunOptions(max_cost=1.0), price=0.4) == (3, "--max-cost 1")


def test_time_ends_it_from_the_first_trial_on():
    assert let_through(RunOptions(max_time_s=10.0), takes_s=4.0) == (3, "--max-time 10s")


def test_a_later_batch_is_not_begun_either():
    budget = Budget(RunOptions(max_trials=5), 0, lambda: 0.0, lambda: 0.0)
    assert len(list(budget.limit_trials(TRIALS))) == 5
    assert budget.ended_by == ""
    assert list(budget.limit_trials(TRIALS)) == []
    assert budget.ended_by == "--max-trials 5"
