"""A Verdict: one invariant judged on one observation."""

from typing import Any, Literal

from msgspec import Struct

Outcome = Literal["pass", "fail", "error", "unproven", "n/a"]
Judgement = Literal["pass", "fail", "error", "unproven"]
"""The outcome of a trial: n/a is one of cells alone."""
TOOL_RAN = "tool-ran"
"""Code of a rule on deeds that a fault leaves unproven: the tool ran, though the fault says that it did not."""
NO_CALL = "no-call"
"""Code of a rule on calls where none was seen."""
REFERENCE_FAILED = "reference-failed"
"""Code of a rule that the task's own solution does not satisfy here."""
UNDECIDING = frozenset({TOOL_RAN, REFERENCE_FAILED})
"""Codes of rules that are unproven for a reason that is not the agent's: they fail no case."""
EXPLAINED = frozenset({*UNDECIDING, NO_CALL})
"""Codes of reasons that say what to do, or that more trials would not change."""
OUTCOMES: tuple[Outcome, ...] = ("pass", "fail", "error", "unproven", "n/a")


class Finding(Struct, frozen=True, omit_defaults=True, gc=False):
    """What a check found. `passed` is None where there was nothing to judge."""

    passed: bool | None
    reason: str
    score: float | None = None
    """In [0, 1]; None means 1 for passed and 0 for not."""
    marks: tuple[tuple[int, int], ...] = ()
    """Spans of the judged text that decided, for the report to mark."""
    details: dict[str, Any] = {}
    empty: bool = False
    """There was nothing to read: a rule that asks fails, one that forbids is unproven."""
    either_way: bool = False
    """A fail that stays one when the rule is negated: the agent led the check out of the workspace."""
    code: str = ""
    """What kind of finding it is, where something depends on that; kebab-case."""


class Verdict(Struct, frozen=True, omit_defaults=True, gc=False):
    """One invariant judged on one observation."""

    trial: str
    invariant: str
    outcome: Judgement
    score: float
    reason: str
    turn: int = 0
    """Index of the turn that decided."""
    marks: tuple[tuple[int, int], ...] = ()
    details: dict[str, Any] = {}
    code: str = ""
    """As the finding has it."""
    ended_by: str = ""
    """How the trial ended, where that and no finding of the rule decided: `raised: RuntimeError: boom`."""
