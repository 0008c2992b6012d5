"""The values of a search: points, plans, what trials showed, and what a hunt can say.

Points are numbered. A set of points is an int whose bits are their numbers, so that a union, a subset test or a count
is one operation. A plan is such a set, with at most one point per call site.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

Plan: TypeAlias = int
PointState: TypeAlias = Literal["held", "failed", "infeasible", "open"]


class Point(Struct, frozen=True):
    """A call site and one mode of its ladder. Sites are numbered in the order in which a calm trial reaches them."""

    site: int
    rung: int
    """Its place on the ladder of its site, from weak to strong."""
    weight: float = 1.0
    """How soon it is worth trying."""
    separate: bool = False
    """Whether it is a class of its own, however alike its trials look: writes, and all calls after the last write."""
    works: bool = False
    """Whether the call does its work and only the reply is lost. Such a fault breaks other rules of an agent than one
    that keeps the call from running, so neither is a form of the other."""
    common: bool = False
    """There is public evidence for its mode, so it is tried by itself even if it seems to break a rule like others."""
    outage: int = 0
    """If it acts on all further calls: a number that is equal for this fault at every call to its target."""
    key: int = 0
    """A number made from its content. It is the same on every machine, unlike the number of the point."""


class Portion:
    """The points and pairs that one shard of a hunt covers.

    A point belongs to the shard that the remainder of its key names, a pair to the one that the remainder of the sum
    names. So each has one owner, whichever order the shards first saw the call sites in.
    """

    def __init__(self, points: Sequence[Point], number: int, of: int) -> None:
        """`number` counts from 0."""
        self._keys = [point.key for point in points]
        self._number, self._of = number, of
        self._by_remainder = [0] * of
        for at, key in enumerate(self._keys):
            self._by_remainder[key % of] |= 1 << at

    @property
    def points(self) -> int:
        return self._by_remainder[self._number]

    def find_partners(self, number: int) -> int:
        """Return the points whose pairs with this point belong to the shard."""
        return self._by_remainder[(self._number - self._keys[number]) % self._of]

    def contains(self, plan: Plan) -> bool:
        """Whether the set of points belongs to the shard."""
        return sum(self._keys[number] for number in list_bits(plan)) % self._of == self._number


class Failure(NamedTuple):
    """A rule that failed, and the code of its verdict: two failures are the same if both are."""

    rule: str
    code: str = ""


class PlanOutcome(Struct, frozen=True):
    """The result of one trial of a plan."""

    plan: Plan
    met: int
    """The points that were met."""
    reached: int
    """The sites that the agent reached, as bits."""
    failures: tuple[Failure, ...] = ()
    shape: str = ""
    """The shape of the trace and how the trial ended. Points whose own trials have the same shape are one class."""
    gave_up: bool = False
    """Whether the agent produced no answer and no write."""
    steps: tuple[str, ...] = ()
    """For each point that was met, in the order of their numbers: what the agent did between it and the next fault."""
    judged: bool = True
    """Whether the trial says something about the rules: one passed or failed, and none ended in an error."""
    broken_rules: tuple[str, ...] = ()
    """Rules whose check ended in an error: the trial does not say whether they hold."""
    unproven_rules: tuple[str, ...] = ()
    """Rules about which the trial showed nothing: a larger plan with such a rule says nothing about its parts."""

    broken: bool = False
    """Whether Holdfast or a provider failed, so that the trial says nothing."""

    def breaks(self, rule: str) -> bool:
        """Whether the trial does not say if the rule holds, because its check, or all of Holdfast, failed."""
        return self.broken or rule in self.broken_rules

    def passes(self, failure: Failure) -> bool:
        """Whether this plan does not fail like that, as far as its own trial says."""
        return failure not in self.failures and not self.breaks(failure.rule)

    def clears(self, part: Plan, failure: Failure) -> bool:
        """Whether the trial shows that the part of its plan does not fail like that."""
        has_met_part = not part & ~self.met and failure.rule not in self.unproven_rules
        return (has_met_part or part == self.plan) and self.passes(failure)


class FaultCause(Struct, frozen=True):
    """A minimal plan that fails a rule, how often it did, and how often calm trials failed the same way."""

    points: Plan
    failure: Failure
    failed: int
    runs: int
    calm_failed: int = 0
    calm_runs: int = 0


class Count(Struct, frozen=True):
    """The number of points, or of pairs of points at different sites, in each state."""

    total: int
    held: int
    failed: int
    infeasible: int
    open: int
    alike: int = 0
    """How many of the pairs in `held` were not tried because a pair of the same classes held."""


class Coverage(Struct, frozen=True):
    """The coverage of single faults and of pairs."""

    points: Count
    pairs: Count


def list_bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
