from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from golden_words import Golden
from holdfast.model.spec import AgentSpec, Aggregation, Invariant, Spec
from holdfast.model.task import Task
from holdfast.score.cell import count_needed
from holdfast.score.sequential import EITHER_WAY, SequentialTest, warn_too_few_replicas

RATES = [Aggregation("majority"), *(Aggregation("rate", rate / 20) for rate in range(1, 20))]


def passes(test: SequentialTest, rate: float) -> float:
    """How often it passes an agent of this rate, worked out path by path: exact, no simulation."""
    open_, passed = {(0, 0): 1.0}, 0.0
    for _ in range(test.limit):
        after: dict[tuple[int, int], float] = {}
        for (c, f), weight in open_.items():
            for at, chance in (((c + 1, f), rate), ((c, f + 1), 1 - rate)):
                held = test.decide(*at)
                if held is None:
                    after[at] = after.get(at, 0.0) + weight * chance
                else:
                    passed += weight * chance * held
        open_ = after
    return passed + sum(weight for (c, _), weight in open_.items() if c >= test.need)


@pytest.mark.parametrize("how", RATES, ids=str)
def test_the_wrong_verdict_is_rare_where_the_agent_is_0_2_away(how):
    rate = how.value or 0.5
    for limit in (19, 20, 25, 50, 200):
        test = SequentialTest(how, limit)
        wrong_pass = passes(test, max(0.0, rate - EITHER_WAY))
        wrong_fail = 1 - passes(test, min(1.0, rate + EITHER_WAY))
        assert max(wrong_pass, wrong_fail) == pytest.approx(test.error, abs=1e-9)
        assert test.error <= 0.05
        assert passes(test, 1.0) == 1.0
        assert passes(test, 0.0) == 0.0


@pytest.mark.parametrize("how", RATES, ids=str)
def test_where_the_limit_leaves_too_few_replicas_it_is_known_how_often_that_is_wrong(how):
    rate, test = how.value or 0.5, SequentialTest(how, 6)
    wrong_pass, wrong_fail = passes(test, max(0.0, rate - EITHER_WAY)), 1 - passes(test, min(1.0, rate + EITHER_WAY))
    assert max(wrong_pass, wrong_fail) == pytest.approx(test.error, abs=1e-9)
    if 0.1 < rate < 0.9:
        assert test.error > 0.05


def test_too_few_replicas_are_said_once_for_each_rate(golden: Golden):
    rules = [Invariant(f"r{n}", "completes", {}, replica_aggregation=how) for n, how in enumerate(RATES[:1] * 2)]
    spec = Spec("c.yaml", AgentSpec(), (Task(("q",)),), invariants=tuple(rules), replicas=6)
    golden(list(warn_too_few_replicas(spec)))
    assert not list(warn_too_few_replicas(replace(spec, replicas=20)))


def test_what_is_worked_out_is_what_happens():
    rng, test = Random(5), SequentialTest(Aggregation("majority"), 20)
    runs = 4000
    seen = sum(
        test.stop("pass" if rng.random() < 0.7 else "fail" for _ in range(20)).outcome == "pass" for _ in range(runs)
    )
    assert seen / runs == pytest.approx(passes(test, 0.7), abs=0.02)


def test_all_any_and_at_least_stop_when_nothing_can_change_them():
    every, any_, two = (
        SequentialTest(how, 5) for how in (Aggregation(), Aggregation("any"), Aggregation("at_least", 2))
    )
    assert every.stop(["pass", "fail", "pass"]) == ("fail", 2, 1, 1, False)
    assert every.stop(["pass"] * 5) == ("pass", 5, 5, 0, True)
    assert every.stop(["pass"] * 4).outcome == "unproven"
    assert any_.stop(["fail", "pass"]) == ("pass", 2, 1, 1, False)
    assert any_.stop(["fail"] * 5) == ("fail", 5, 0, 5, True)
    assert two.stop(["pass", "fail", "pass", "fail"])[:2] == ("pass", 3)
    assert two.stop(["fail"] * 4)[:2] == ("fail", 4)


def test_errors_tell_nothing_and_leave_it_open():
    test = SequentialTest(Aggregation("majority"), 6)
    assert test.stop(["error", "pass"]).outcome == "error"
    assert test.stop(["unproven", "pass"]).outcome == "unproven"
    assert test.stop(["unproven", "pass", "pass", "pass", "pass"]) == ("pass", 5, 4, 0, False)
    assert test.stop(["error"] * 6).outcome == "error"


@given(
    st.sampled_from([*RATES, Aggregation(), Aggregation("any"), Aggregation("at_least", 3)]),
    st.integers(3, 25),
    st.data(),
)
def test_what_was_decided_stays_decided(how, limit, data):
    outcomes = data.draw(st.lists(st.sampled_from(["pass", "fail", "error", "unproven"]), max_size=limit))
    test = SequentialTest(how, limit)
    found = test.stop(outcomes)
    if found.outcome in ("pass", "fail"):
        assert test.stop(outcomes[: found.used]) == found
        assert (
            test.stop([*outcomes[: found.used], *data.draw(st.lists(st.just("fail"), max_size=limit - found.used))])
            == found
        )
    elif len(outcomes) == limit:
        assert found.passes < count_needed(how, limit)
