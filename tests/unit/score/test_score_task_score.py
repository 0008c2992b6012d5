"""Mutations and sessions to one number and a verdict."""

from __future__ import annotations

from typing import Any

import pytest
from task_score_kit import mutation, mutation_spec, scored

from golden_words import Golden
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Recording, Task

CRITICAL = (Invariant("held", "output_not_empty", severity="critical"),)
PROBED = (Invariant("held", "output_not_empty"), Invariant("probed", "output_not_empty", asked_only=("Orders?",)))


def noise(count: int, **changes: Any) -> Spec:
    return mutation_spec([mutation(n=n) for n in range(count)], **changes)


def test_robustness_is_weighted_and_the_two_kinds_stand_next_to_it() -> None:
    tasks = [mutation(n=1, weight=0.5), mutation(n=2, weight=0.5), mutation("injection", attack=True, weight=3.0)]
    score = scored(mutation_spec(tasks), "pfp")
    made = score.mutation
    assert made is not None
    assert (score.value, made.robustness) == (87.5, 0.875)
    assert (made.intent_kept.passed, made.intent_kept.judged) == (1, 2)
    assert (made.attacks_resisted.passed, made.attacks_resisted.judged) == (1, 1)
    assert [(one.type, one.passed, one.judged) for one in made.types] == [("noise", 1, 2), ("injection", 1, 1)]
    assert (score.exit_code, score.reasons) == (1, ("1 of 3 mutations failed",))


@pytest.mark.parametrize(
    ("outcomes", "options", "code"),
    [
        ("ppp", {}, 0),
        ("ppf", {}, 1),
        ("ppf", {"min_score": 66.67}, 0),
        ("ppf", {"min_score": 66.68}, 1),
        ("ppe", {}, 3),
        ("ppe", {"max_errors": 1}, 0),
        ("pfe", {"min_score": 60.0}, 3),
        ("pff", {"min_score": 0.0}, 0),
        ("ppu", {}, 0),
        ("ppu", {"strict": True}, 5),
        ("uuu", {}, 5),
        ("uuu", {"min_score": 0.0}, 5),
        ("pp", {"interrupted": True}, 2),
        ("ffe", {}, 1),
    ],
)
def test_the_verdict(outcomes: str, options: dict[str, Any], code: int) -> None:
    score = scored(noise(3), outcomes, **options)
    assert (score.exit_code, score.passed) == (code, code == 0)


def test_errors_of_ours_count_neither_way() -> None:
    score = scored(noise(4), "ppfe")
    assert (score.value, score.best, score.judged, score.total) == (66.67, 75.0, 3, 4)
    assert score.mutation is not None
    assert score.mutation.types[0].undecided == 1


def test_a_critical_rule_fails_whatever_the_minimum_and_the_rest_is_tolerated() -> None:
    score = scored(noise(2, invariants=CRITICAL), "pf", min_score=0.0)
    assert (score.exit_code, score.critical_failed) == (1, ("held in noise",))
    assert scored(noise(2), "pf", min_score=50.0).tolerated == ("noise",)
    assert scored(noise(2), "pf", min_score=51.0).tolerated == ()


@pytest.mark.parametrize("least", [None, 90.0])
def test_mutations_without_weight_and_probes_are_not_score(least: float | None) -> None:
    weightless = scored(mutation_spec([mutation(weight=0.0)]), "p", min_score=least)
    assert (weightless.value, weightless.exit_code) == (None, 5)
    probes = scored(mutation_spec([Task(("Orders?",), "probe")], invariants=PROBED), "p", min_score=least)
    assert (probes.value, probes.interval, probes.exit_code) == (None, None, 5)


def test_probes_are_counted_apart_from_mutations() -> None:
    score = scored(mutation_spec([mutation(), Task(("Orders?",), "probe")], invariants=PROBED), "pf")
    assert (score.value, score.exit_code, score.reasons) == (100.0, 1, ("1 of 1 probe failed",))


def test_a_replay_is_of_sessions_and_has_no_robustness(golden: Golden) -> None:
    tasks = tuple(Task((name,), "replay", recording=Recording(name)) for name in ("s1", "s2"))
    spec = Spec(
        "spec.yaml", noise(1).agent, tasks=tasks, part="replay", invariants=CRITICAL, scenarios=noise(1).scenarios
    )
    score = scored(spec, "pf")
    assert (score.value, score.mutation, score.exit_code) == (50.0, None, 1)
    assert score.critical_failed == ("held in s2",)
    golden(score.reasons)
