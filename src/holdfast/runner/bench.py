"""Judging one trial: the rules that it serves, what that takes, and the control that it is compared with."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.judge import Judge
from holdfast.model.observation import Observation
from holdfast.model.spec import Invariant, Spec
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan
from holdfast.plan.serving import EVERY_RULE
from holdfast.runner.consultations import Consultations
from holdfast.secrets.masker import Masker

_PATTERNS = {"pattern", "patterns", "schema"}
"""Settings whose cost is the user's to decide."""


class Served(NamedTuple):
    """The rules that a trial is judged by, and what judging them takes."""

    rules: tuple[Invariant, ...]
    asks: bool
    """A model is asked for some."""
    slow: bool
    """Some have a pattern of the user's."""


class Bench:
    """Where trials are judged, each by the rules that it serves."""

    def __init__(self, spec: Spec, plan: Plan, consultations: Consultations, masker: Masker) -> None:
        self.controls: dict[str, Observation] = {}
        """What was seen of trials that others are compared with, by their ids."""
        self._spec = spec
        self._plan = plan
        self._consultations = consultations
        self._masker = masker
        self._judge = Judge(spec)
        self._stored: Judge | None = None
        """Judges what an earlier session had stored."""
        self._own: dict[str, Served] = {}
        """By rule: of trials that serve one."""
        self._shared: dict[str, Served] = {}
        """By scenario: of trials that serve all."""

    def serving(self, trial: Trial) -> Served:
        """The rules that the trial is judged by."""
        known, name = (
            (self._shared, trial.scenario.name) if trial.invariant == EVERY_RULE else (self._own, trial.invariant)
        )
        served = None if self._plan.selective else known.get(name)
        if served is None:
            rules = self._plan.rules(trial)
            slow = any(_PATTERNS & rule.settings.keys() for rule in rules)
            served = known[name] = Served(rules, self._consultations.ask_for(rules), slow)
        return served

    def compared(self, trial: Trial) -> Observation | None:
        """The control that the trial is compared with, if there is one."""
        control = self._plan.control_for(trial) if self._plan.controls else None
        return None if control is None else self.controls.get(control.id)

    def verdicts(self, trial: Trial, seen: Observation, *, stored: bool = False) -> list[Verdict]:
        """What its rules say of the trial, secrets masked. `stored`: it was read from a run's files."""
        judge, compared = self._judge, self.compared(trial)
        if stored:
            judge = self._stored = self._stored or Judge(self._spec, stored=True)
        verdicts = [judge.judge(rule, trial, seen, compared) for rule in self.serving(trial).rules]
        return [self._masker.struct(verdict) for verdict in verdicts] if self._masker else verdicts
