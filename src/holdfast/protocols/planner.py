"""Planners decide which trials run next. For example:

    class EachOnce:
        "Every trial, once."

        detailed = False

        def __init__(self, trials: Sequence[Trial]) -> None:
            self._left = trials

        def next(self, judged: Judged) -> Sequence[Trial]:
            now, self._left = self._left, ()
            return now

A planner is pure: the same judgements give the same trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.model.judged import JudgingProgress
from holdfast.model.trial import Trial


class Planner(Protocol):
    """Decides from the judged trials which trials to run next; `[]` ends the run. It has no side effects."""

    @property
    def detailed(self) -> bool:
        """Whether Judged must list each trial, with its verdict codes, ledger and call sites."""

    def next(self, judged: JudgingProgress) -> Sequence[Trial]: ...
