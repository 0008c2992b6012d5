from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.spec import Aggregation
from holdfast.score.combine import needed
from holdfast.score.sequential import EITHER_WAY, SequentialTest

RATES = [Aggregation("majority"), *(Aggregation("rate", rate) for rate in (0.3, 0.5, 0.6, 0.75, 0.8, 0.9))]


def passes(test: SequentialTest, rate: float) -> float:
    """How often it passes an agent of this rate, worked out path by path."""
    open_, passed = {(0, 0): 1.0}, 0.0
    for _ in range(test.limit):
        after: dict[tuple[int, int], float] = {}
        for (c, f), weight in open_.items():
            for at, chance in (((c + 1, f), rate), ((c, f + 1), 1 - rate)):
                held = test.decided(*at)
                if held is None:
                    after[at] = after.get(at, 0.0) + weight * chance
                else:
                    passed += weight * chance * held
        open_ = after
    return passed + sum(weight for (c, _), weight in open_.items() if c >= test.need)


@pytest.mark.parametrize("how", RATES, ids=str)
def test_the_wrong_verdict_is_rare_where_the_agent_is_0_2_away(how):
    rate = how.value or 0.5
    free, limited = SequentialTest(how, 200), SequentialTest(how, 20)
    assert passes(free, rate - EITHER_WAY) <= 0.05
    assert passes(limited, rate - EITHER_WAY) <= 0.08
    if rate + EITHER_WAY < 1:
        assert passes(free, rate + EITHER_WAY) >= 0.95
        assert passes(limited, rate + EITHER_WAY) >= 0.94
    assert passes(limited, 1.0) == 1.0
    assert passes(limited, 0.0) == 0.0


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
        assert found.passes < needed(how, limit)
