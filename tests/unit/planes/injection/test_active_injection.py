from __future__ import annotations

from random import Random

from holdfast.model.scenario import Injection, Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.planes.injection.active_injection import RandomDraws

FAULTS = (Injection("tool", "search", "slow"),) * 3
TRIAL = Trial("0123456789ab", "contract", Scenario("storm", FAULTS), Task(("q",)), seed=7)


def test_the_draws_of_a_fault_derive_from_its_index() -> None:
    draws = RandomDraws(TRIAL)
    thrown, own = draws.create_rng(2, "search:1"), Random(draws.draw_bits(2, "rng:search:1"))
    assert [thrown.random(), thrown.getrandbits(96), thrown.choice("abc"), thrown.uniform(-1, 1)] == [
        own.random(),
        own.getrandbits(96),
        own.choice("abc"),
        own.uniform(-1, 1),
    ]
