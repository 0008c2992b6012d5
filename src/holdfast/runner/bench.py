"""Judges one trial: selects its rules, finds its control and collects the verdicts."""

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
"""Settings that hold a pattern of the user's, which may take any time to match."""


class JudgingRules(NamedTuple):
    """The rules that judge a trial, and what judging them costs."""

    rules: tuple[Invariant, ...]
    asks: bool
    """Whether a rule asks a model."""
    slow: bool
    """Whether a rule has a pattern written by the user."""


class Bench:
    """Judges trials, each by its own rules."""

    def __init__(self, spec: Spec, plan: Plan, consultations: Consultations, masker: Masker) -> None:
        self.controls: dict[str, Observation] = {}
        """The observations of control trials, by trial id."""
        self._spec = spec
        self._plan = plan
        self._consultations = consultations
        self._masker = masker
        self._judge = Judge(spec)
        self._stored: Judge | None = None
        """The judge for observations of an earlier session."""
        self._own: dict[str, JudgingRules] = {}
        """By rule, for trials that serve one rule."""
        self._shared: dict[str, JudgingRules] = {}
        """By scenario, for trials that serve every rule."""

    def select_rules(self, trial: Trial) -> JudgingRules:
        """Return the rules that judge this trial."""
        known, name = (
            (self._shared, trial.scenario.name) if trial.invariant == EVERY_RULE else (self._own, trial.invariant)
        )
        served = None if self._plan.selective else known.get(name)
        if served is None:
            rules = self._plan.get_rules(trial)
            slow = any(_PATTERNS & rule.settings.keys() for rule in rules)
            served = known[name] = JudgingRules(rules, self._consultations.needs_model(rules), slow)
        return served

    def get_control(self, trial: Trial) -> Observation | None:
        """Return the control that this trial is compared with, if there is one."""
        control = self._plan.get_control(trial) if self._plan.controls else None
        return None if control is None else self.controls.get(control.id)

    def judge(self, trial: Trial, observation: Observation, *, stored: bool = False) -> list[Verdict]:
        """Judge the trial and mask secrets. `stored`: the observation was read from a run's files."""
        judge, compared = self._judge, self.get_control(trial)
        if stored:
            judge = self._stored = self._stored or Judge(self._spec, stored=True)
        verdicts = [judge.judge(rule, trial, observation, compared) for rule in self.select_rules(trial).rules]
        return [self._masker.mask_struct(verdict) for verdict in verdicts] if self._masker else verdicts
