"""RandomDraws: the same for the same trial, whatever the invariant; another for anything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.task import Recording, Task
from holdfast.model.trial import Trial
from holdfast.planes.injection.active_injection import RandomDraws, compute_trial_seed

params = st.dictionaries(st.text(max_size=4), st.one_of(st.integers(0, 9), st.text(max_size=4)), max_size=3)
trials = st.builds(
    Trial,
    id=st.just("0" * 12),
    kind=st.just("contract"),
    scenario=st.builds(Scenario, st.text(max_size=8)),
    task=st.builds(Task, st.tuples(st.text(max_size=12))),
    replica=st.integers(0, 50),
    params=params,
    invariant=st.text(max_size=5),
    seed=st.integers(0, 2**31),
)


LATE = Injection("tool", "search", "slow")
DOWN = Injection("tool", "search", "error", {"error_code": 503}, Schedule(probability=0.5))


def lucky(trial: Trial, *faults: Injection) -> RandomDraws:
    return RandomDraws(replace(trial, scenario=replace(trial.scenario, injections=faults)))


def draws(trial: Trial, fault: int = 0, faults: tuple[Injection, ...] = (LATE, DOWN)) -> list[int]:
    draws = lucky(trial, *faults)
    return [draws.draw_bits(fault, key) for key in ("search:0a:1", "search:0a:2", "chat:1")]


@given(trials, st.text(max_size=5), st.text(max_size=12))
def test_every_invariant_and_every_id_meets_the_same_luck(trial: Trial, invariant: str, id: str) -> None:
    assert draws(trial) == draws(replace(trial, invariant=invariant, id=id, kind="control"))


@given(trials)
def test_another_replica_seed_task_or_parameter_meets_other_luck(trial: Trial) -> None:
    others = [
        replace(trial, replica=trial.replica + 1),
        replace(trial, seed=trial.seed + 1),
        replace(trial, task=Task((*trial.task.turns, "more"))),
        replace(trial, params={**trial.params, "new parameter": 1}),
    ]
    assert all(draws(other) != draws(trial) for other in others)
    assert draws(trial, 0) != draws(trial, 1)


@given(trials)
def test_a_fault_draws_the_same_wherever_it_is_listed_and_whatever_its_scenario_is_called(trial: Trial) -> None:
    alone, renamed = draws(trial, 0, (DOWN,)), replace(trial, scenario=Scenario(trial.scenario.name + "x"))
    assert alone == draws(trial, 1, (LATE, DOWN)) == draws(renamed, 0, (DOWN,))
    assert alone == draws(trial, 0, (DOWN, DOWN)) != draws(trial, 1, (DOWN, DOWN))


injections = st.builds(
    Injection,
    plane=st.sampled_from(["tool", "llm", "http"]),
    target=st.sampled_from(["search", "*"]),
    mode=st.sampled_from(["error", "slow"]),
    settings=st.dictionaries(st.sampled_from(["error_code", "delay_ms"]), st.integers(0, 3), max_size=2),
    schedule=st.builds(Schedule, probability=st.sampled_from([0.2, 0.5, 1.0]), times=st.sampled_from([None, 1])),
)


@given(trials, st.lists(injections, min_size=1, max_size=5), st.data())
def test_dropping_a_fault_leaves_the_draws_of_the_others(
    trial: Trial, faults: list[Injection], data: st.DataObject
) -> None:
    """Read backwards it is pasting one. Of equal faults the last goes: the ordinal is all that tells them apart."""
    gone = data.draw(st.integers(0, len(faults) - 1))
    gone = max(at for at, one in enumerate(faults) if one == faults[gone])
    before = [draws(trial, at, tuple(faults)) for at in range(len(faults)) if at != gone]
    rest = tuple(one for at, one in enumerate(faults) if at != gone)
    assert before == [draws(trial, at, rest) for at in range(len(rest))]


@given(trials, trials)
def test_a_trial_that_became_a_session_draws_as_it_did(trial: Trial, other: Trial) -> None:
    recorded = replace(other.task, recording=Recording("s", seed=compute_trial_seed(trial)))
    assert draws(replace(other, task=recorded)) == draws(trial)


@given(trials, st.permutations(["a:1", "a:2", "b:1", "c:1"]))
def test_the_order_of_draws_does_not_matter(trial: Trial, order: list[str]) -> None:
    draws, again = lucky(trial, LATE), lucky(trial, LATE)
    assert {key: draws.draw_bits(0, key) for key in sorted(order)} == {key: again.draw_bits(0, key) for key in order}
    assert draws.create_rng(0, "a:1").random() == again.create_rng(0, "a:1").random()


@given(trials, st.floats(0, 1))
def test_a_higher_probability_hits_whatever_a_lower_one_hits(trial: Trial, probability: float) -> None:
    draws = lucky(trial, DOWN)
    for key in map(str, range(20)):
        if draws.draw_chance(0, key, probability / 2):
            assert draws.draw_chance(0, key, probability)
        assert draws.draw_chance(0, key, 1.0)
        assert not draws.draw_chance(0, key, 0.0)


def test_a_chance_is_about_as_likely_as_it_says() -> None:
    draws = lucky(Trial(id="0" * 12, kind="contract", scenario=Scenario("s"), task=Task(("hi",))), DOWN)
    hits = sum(draws.draw_chance(0, str(n), 0.3) for n in range(5000))
    assert 1400 < hits < 1600


def test_luck_is_the_same_on_every_machine_and_in_every_release() -> None:
    """A stored run is repeated by its seed alone: these numbers must not change."""
    trial = Trial(
        id="0" * 12, kind="contract", scenario=Scenario("s"), task=Task(("hi",)), replica=1, params={"a": 1}, seed=7
    )
    assert lucky(trial, LATE, DOWN).draw_bits(1, "search:00ff:1") == 3064042502841754676
