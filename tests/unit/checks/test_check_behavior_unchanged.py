import asyncio

import pytest
from check_exhibits import exhibit, of_turns

from holdfast.checks.response.behavior_unchanged import BehaviorUnchanged
from holdfast.model.observation import Observation, Turn
from holdfast.model.world import Evidence
from holdfast.protocols.check import Advice

CALM = "Revenue was 4.2 million, according to the filing."
NO_ANSWER = "the control run gave no answer to compare with"


def test_baseline_auto_compares_with_the_control():
    rule = BehaviorUnchanged()
    assert rule.configured().needs_control
    same, other = "According to the filing, revenue was 4.2 million.", CALM.replace("4.2", "5.1")
    assert rule.decide(exhibit(same, control=CALM)).passed
    finding = rule.decide(exhibit(other, control=CALM))
    assert finding.passed is False
    assert (finding.code, finding.key) == ("answer-differs", ("number",))
    assert "lexical" in finding.reason


def test_a_baseline_by_hand_needs_no_control():
    rule = BehaviorUnchanged(baseline=CALM)
    assert not rule.configured().needs_control
    assert rule.decide(exhibit(CALM)).passed
    assert rule.decide(exhibit("Tool down.", control="Tool down.")).passed is False


def test_no_control_is_nothing_to_judge():
    finding = BehaviorUnchanged().decide(exhibit("x"))
    assert finding.passed is None
    assert finding.reason == NO_ANSWER


@pytest.mark.parametrize("calm", [Turn("?"), Turn("?", " "), Turn("?", "half", ending="timeout")])
def test_a_control_without_an_answer_is_nothing_to_judge(calm):
    control = Observation(trial="c", turns=(calm,))
    assert BehaviorUnchanged().decide(of_turns(Turn("?", "x"), control=control)).passed is None


def test_turns_are_compared_one_by_one():
    control = Observation(trial="c", turns=(Turn("a", "Hello there."), Turn("b", CALM)))
    turns = (Turn("a", "Hello there."), Turn("b", "The tool is down."))
    rule = BehaviorUnchanged()
    assert rule.decide(of_turns(*turns, judged=0, control=control)).passed
    assert rule.decide(of_turns(*turns, judged=1, control=control)).passed is False


def test_a_control_with_fewer_turns_is_nothing_to_judge():
    control = Observation(trial="c", turns=(Turn("a", "Hello there."),))
    turns = (Turn("a", "Hello there."), Turn("b", CALM))
    assert BehaviorUnchanged().decide(of_turns(*turns, control=control)).passed is None


def test_empty_baseline_is_a_problem():
    assert [field for field, _ in BehaviorUnchanged(baseline="").problems()] == ["baseline"]
    assert not list(BehaviorUnchanged().problems())


def test_a_model_is_asked_only_of_turns_that_both_have_a_text():
    asked = []

    async def ask(model, system, question, **_):
        asked.append(question)
        return Advice('{"score": 1, "reason": "the same"}')

    rule = BehaviorUnchanged(method="model", model="m")
    seen = Observation("t", (Turn("?", "one"), Turn("?", None), Turn("?", "three"), Turn("?", "")))
    calm = Observation("c", (Turn("?", "One."), Turn("?", "Two."), Turn("?", None), Turn("?", "Four.")))
    asyncio.run(rule.consult(seen, calm, Evidence(), ask))
    assert len(asked) == 2  # one turn, in both directions
    assert all("One." in question for question in asked)
