"""An agent compared with itself: how often it is called worse or better though nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from holdfast.model.spec import Aggregation
from holdfast.model.verdict import Judgement
from holdfast.runner.past.comparison import Outcomes, PairingPlan, RulePlan, count_pairs
from holdfast.score.comparison import ALPHA, compare_rules
from holdfast.store.pairs import StoredPair

RULES = ("a", "b", "c")


def one_run(rng: Random, *, prompts: int, scenarios: int, replicas: int, together: float) -> Iterator[StoredPair]:
    """Rules that pass half of the time; a share of the outcomes is drawn once for a prompt, in all it is asked in."""
    for rule in RULES:
        for prompt in range(prompts):
            today = rng.random() < 0.5
            for scenario in range(scenarios):
                for replica in range(replicas):
                    passed = today if rng.random() < together else rng.random() < 0.5
                    outcome: Judgement = "pass" if passed else "fail"
                    key = hash((rule, prompt, scenario))
                    yield StoredPair(key, "", rule, str(scenario), prompt, replica, outcome)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["all", "majority"])
@pytest.mark.parametrize("together", [0.6, 1.0])
@pytest.mark.parametrize(("prompts", "scenarios", "replicas"), [(12, 1, 5), (10, 4, 3)])
def test_an_agent_compared_with_itself_is_rarely_called_worse_or_better(how, together, prompts, scenarios, replicas):
    rng, runs = Random(11), 120
    plan = PairingPlan({("", rule): RulePlan(Aggregation(how)) for rule in RULES})
    wrong = 0
    for _ in range(runs):
        before, after = (
            Outcomes(one_run(rng, prompts=prompts, scenarios=scenarios, replicas=replicas, together=together), plan)
            for _ in range(2)
        )
        found = compare_rules(count_pairs(before, after, plan)[0])
        wrong += any(one.change in ("worse", "better") for one in found)
    assert wrong / runs <= ALPHA + 0.04  # two standard deviations of so few runs


def test_an_agent_is_not_worse_for_more_replicas():
    rng, plan = Random(1), PairingPlan()
    one, five = (Outcomes(one_run(rng, prompts=30, scenarios=1, replicas=n, together=0.0), plan) for n in (1, 5))
    assert [found.change for found in compare_rules(count_pairs(one, five, plan)[0])] == ["cannot tell"] * 3
