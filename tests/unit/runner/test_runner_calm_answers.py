"""Answers of one prompt in calm, compared after the run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trace import Cost, TraceEvent
from holdfast.model.trial import Trial
from holdfast.runner.across_trials import CalmAnswers


class OneCalm:
    """A spec with one calm scenario and one that is not."""

    class Weather:
        def __init__(self, name: str, calm: bool) -> None:
            self.name = name
            self.calm = calm

    scenarios = (Weather("calm", True), Weather("storm", False))


def trial(scenario: str = "calm", prompt: str = "?", kind: str = "contract") -> Trial:
    return Trial("0", kind, Scenario(scenario), Task((prompt,)))  # type: ignore[arg-type]


def seen(text: str | None, error: str = "") -> Observation:
    return Observation("0", (Turn("?", text),), error=error)


@pytest.mark.parametrize(
    ("asked", "warns"),
    [
        ([(trial(), seen("a")), (trial(), seen("a"))], False),
        ([(trial(), seen("a")), (trial(), seen("b"))], True),
        ([(trial(kind="control", scenario=""), seen("a")), (trial(), seen("b"))], True),
        ([(trial(), seen("a")), (trial("storm"), seen("b"))], False),
        ([(trial(), seen("a")), (trial(prompt="!"), seen("b"))], False),
        ([(trial(), seen("a")), (trial(), seen(None))], False),
        ([(trial(), seen("a")), (trial(), seen("b", "our side"))], False),
    ],
)
def test_two_answers_to_one_prompt_in_calm_are_reported(asked: list[tuple[Trial, Observation]], warns: bool) -> None:
    answers = CalmAnswers(OneCalm())  # type: ignore[arg-type]
    for one, observation in asked:
        answers.add(one, observation)
    assert bool(answers.warning) is warns


@pytest.mark.parametrize(("billed", "warns"), [(True, False), (False, True)])
def test_an_agent_whose_model_samples_is_not_told_of_it(billed: bool, warns: bool) -> None:
    call = TraceEvent(0.0, "llm_call", cost=Cost(model="m", billed=billed))
    answers = CalmAnswers(OneCalm())  # type: ignore[arg-type]
    for text in ("a", "b"):
        answers.add(trial(), replace(seen(text), trace=(call,)))
    assert bool(answers.warning) is warns
