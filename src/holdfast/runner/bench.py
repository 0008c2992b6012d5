"""Judges one trial: finds its control and collects the verdicts of its rules."""

from __future__ import annotations

from holdfast.judge import Judge
from holdfast.model.observation import Observation
from holdfast.model.spec import Spec
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan
from holdfast.secrets.masker import Masker

_PATTERNS = {"pattern", "patterns", "schema"}
"""Settings that hold a pattern of the user's, which may take any time to match."""


class Bench:
    """Judges trials, each by its own rules."""

    def __init__(self, spec: Spec, plan: Plan, masker: Masker) -> None:
        self.controls: dict[str, Observation] = {}
        """The observations of control trials, by trial id."""
        self._spec = spec
        self._plan = plan
        self._masker = masker
        self._judge = Judge(spec)
        self._stored: Judge | None = None
        """The judge for observations of an earlier session."""
        self._slow = frozenset(rule.id for rule in plan.invariants if _PATTERNS & rule.settings.keys())

    def is_slow(self, trial: Trial) -> bool:
        """Return whether a rule of this trial has a pattern written by the user."""
        return bool(self._slow) and any(rule.id in self._slow for rule in self._plan.get_rules(trial))

    def get_control(self, trial: Trial) -> Observation | None:
        """Return the control that this trial is compared with, if there is one."""
        control = self._plan.get_control(trial) if self._plan.controls else None
        return None if control is None else self.controls.get(control.id)

    def judge(self, trial: Trial, observation: Observation, *, stored: bool = False) -> list[Verdict]:
        """Judge the trial and mask secrets. `stored`: the observation was read from a run's files."""
        judge, compared = self._judge, self.get_control(trial)
        if stored:
            judge = self._stored = self._stored or Judge(self._spec, stored=True)
        verdicts = [judge.judge(rule, trial, observation, compared) for rule in self._plan.get_rules(trial)]
        return [self._masker.mask_struct(verdict) for verdict in verdicts] if self._masker else verdicts
