"""A Verdict: one invariant judged on one observation."""

from typing import Any, Literal

from msgspec import Struct

Outcome = Literal["pass", "fail", "error", "unproven", "n/a"]
Judgement = Literal["pass", "fail", "error", "unproven"]
"""The outcome of a trial; only cells can be n/a."""
UNDECIDING = frozenset({"program-missing", "reference-failed", "tool-ran"})
"""Codes of rules that are unproven for a reason other than the agent: they fail no case."""
OUTCOMES: tuple[Outcome, ...] = ("pass", "fail", "error", "unproven", "n/a")


class Finding(Struct, frozen=True, omit_defaults=True, gc=False):
    """A check's finding. `passed` is None if there was nothing to judge."""

    passed: bool | None
    reason: str
    code: str = ""
    """The kind of finding, in kebab-case: scripts may rely on it. The reason is the same as a sentence."""
    key: tuple[str, ...] = ()
    """The values that make two findings of one code the same cause: the field, the status, above or below."""
    score: float | None = None
    """In [0, 1]; None means 1 if passed, otherwise 0."""
    marks: tuple[tuple[int, int], ...] = ()
    """Spans of the judged text that decided, for highlighting in reports."""
    details: dict[str, Any] = {}
    empty: bool = False
    """There was no text to read, or not all of it: a positive rule fails, a negative one is unproven."""
    either_way: bool = False
    """A failure that remains one if the rule is negated: a link leaves the workspace, or only some parts fit."""


class CauseKey(Struct, frozen=True, omit_defaults=True, gc=False):
    """The cause as values: two failures with equal values have one cause."""

    rule: str
    """Empty if no rule decided because an attack was obeyed."""
    code: str
    key: tuple[str, ...] = ()


class Verdict(Struct, frozen=True, omit_defaults=True, gc=False):
    """One invariant judged on one observation."""

    trial: str
    invariant: str
    outcome: Judgement
    score: float
    reason: str
    turn: int = 0
    """The index of the turn that decided."""
    marks: tuple[tuple[int, int], ...] = ()
    details: dict[str, Any] = {}
    code: str = ""
    """The finding's code."""
    key: tuple[str, ...] = ()
    ended_by: str = ""
    """How the trial ended, if the ending and not a finding of the rule decided: `raised: RuntimeError: boom`."""

    @property
    def cause(self) -> CauseKey:
        return CauseKey(self.invariant, self.code, self.key)
