"""Compares calm answers of fresh agents: many cells ask the same prompt in calm, so the comparison is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from holdfast.model.codec import digest, encode_canonical
from holdfast.model.observation import Observation
from holdfast.model.shorten import shorten
from holdfast.model.spec import Spec
from holdfast.model.trial import Trial

SHOWN = 60
"""Characters of a prompt and of an answer shown in the warning."""


class _FirstAnswer(Struct, frozen=True):
    """The first answer to a prompt."""

    mark: str
    shown: str


class CalmAnswers:
    """Collects the answers of trials without faults, and detects a prompt with two different answers."""

    def __init__(self, spec: Spec) -> None:
        self._calm = frozenset(scenario.name for scenario in spec.scenarios if scenario.calm)
        self._first: dict[str, _FirstAnswer] = {}
        self.warning = ""

    def add(self, trial: Trial, observation: Observation) -> None:
        if self.warning or observation.error or (trial.kind != "control" and trial.scenario.name not in self._calm):
            return
        if any(event.cost is not None and event.cost.billed for event in observation.trace):
            return  # a provider's model samples its answers
        answers = [turn.text for turn in observation.turns]
        if not answers or None in answers:
            return
        question = digest(encode_canonical([trial.task, trial.params]))
        mark = digest(encode_canonical(answers))
        first = self._first.setdefault(question, _FirstAnswer(mark, shorten(answers[-1] or "", SHOWN)))
        if first.mark != mark:
            prompt = shorten(trial.task.prompt, SHOWN)
            self.warning = (
                f"answers differed between calm trials of one prompt: '{prompt}' got '{first.shown}' and "
                f"'{shorten(answers[-1] or '', SHOWN)}'. Either the agent keeps state between trials or its answers "
                "are not deterministic."
            )


def start_comparison(
    spec: Spec, controls: Iterable[Trial], observations: Mapping[str, Observation]
) -> CalmAnswers | None:
    """Start comparing if the agent is new for every trial; other agents are asked twice in the preflight."""
    agent = spec.agent
    if agent.isolation != "fresh" or (agent.type == "http" and not agent.launched):
        return None
    comparison = CalmAnswers(spec)
    for trial in controls:
        if trial.id in observations:
            comparison.add(trial, observations[trial.id])
    return comparison
