from __future__ import annotations

from collections import Counter

import pytest

from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.plan import plan
from holdfast.runner.unminded import unminded
from holdfast.score import Tally


def tally(check: str, minded: set[str], **endings: int) -> Tally:
    spec = Spec(
        path="c.yaml",
        agent=AgentSpec(),
        tasks=(Task(("one",)),),
        scenarios=(Scenario("calm"),),
        invariants=(Invariant("r", check, {"value": "x"} if check == "contains" else {}),),
    )
    made = Tally(spec, plan(spec))
    made.trials, made.unminded, made.minded = 12, Counter(endings), minded
    return made


def test_endings_that_no_rule_minded_are_counted() -> None:
    assert [*unminded(tally("contains", set(), timeout=3, crashed=1, no_answer=5))] == [
        "3 of 12 trials ended in a timeout and failed no rule: they were judged on what there was "
        "(a `completes` rule would fail)",
        "1 of 12 trials ended in a crash and failed no rule: it was judged on what there was "
        "(a `completes` rule would fail)",
    ]
    assert [*unminded(tally("contains", set()))] == []


@pytest.mark.parametrize(("minded", "notes"), [({"crashed"}, 1), ({"crashed", "timeout"}, 0), (set(), 2)])
def test_endings_by_which_a_rule_on_endings_failed_are_known(minded: set[str], notes: int) -> None:
    found = [*unminded(tally("completes", minded, timeout=3, crashed=1))]
    assert len(found) == notes
    assert not any("completes" in note for note in found)
