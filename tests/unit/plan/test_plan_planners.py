from __future__ import annotations

import pytest

from holdfast.model.task import Task
from holdfast.model.trial import Judged, Trial
from holdfast.plan import FailFast, Once

TRIALS = [Trial(f"{i:012x}", "contract", "s", Task(("q",)), replica=i) for i in range(5)]


def test_once_answers_everything_then_nothing():
    once = Once(TRIALS)
    assert once.next(Judged()) is TRIALS
    assert not once.next(Judged(done=5))
    assert not once.next(Judged(done=5, failed=True))


def test_fail_fast_answers_slices_until_one_fails():
    planner = FailFast(TRIALS, width=2)
    assert list(planner.next(Judged())) == TRIALS[:2]
    assert list(planner.next(Judged(done=2))) == TRIALS[2:4]
    assert list(planner.next(Judged(done=4))) == TRIALS[4:]
    assert not planner.next(Judged(done=5))
    assert not planner.next(Judged(done=2, failed=True))


def test_planners_are_pure():
    planner = FailFast(TRIALS, width=3)
    assert list(planner.next(Judged(done=3))) == list(planner.next(Judged(done=3)))


def test_fail_fast_refuses_a_width_that_never_ends():
    with pytest.raises(ValueError, match="at least 1"):
        FailFast(TRIALS, width=0)
