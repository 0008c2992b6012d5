"""Classes of points that the agent treats alike, and sets that fail, together with those of the same classes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from holdfast.hunt.outcomes import Plan, list_bits


class Classes:
    """Points of one site that look alike: what held with one of them is taken to hold with the others."""

    def __init__(self) -> None:
        self.of: list[int] = []
        """By point: its class."""
        self.held_with: list[int] = []
        """By point: the points whose class held together with its class."""
        self._by_key: dict[Hashable, int] = {}

    def add_points(self, count: int) -> None:
        self.of += [1 << number for number in range(len(self.of), len(self.of) + count)]
        self.held_with += [0] * count

    def hold(self, met: int) -> None:
        """Record that the points were met together in a trial in which no rule failed."""
        classes = 0
        for number in list_bits(met):
            classes |= self.of[number]
        for number in list_bits(classes):
            self.held_with[number] |= classes

    def join(self, number: int, key: Hashable) -> None:
        """Put the point into a class with those of the same key."""
        # One member stands for all: a pair that held with one is crossed off for every other member as well. With
        # eight modes of which the agent distinguishes three, that leaves a seventh of the pairs of two sites.
        joined = self._by_key.get(key, 0) | 1 << number
        self._by_key[key] = joined
        # What held with one member now holds with all of them, and the other way round.
        together = 0
        for member in list_bits(joined):
            self.of[member] = joined
            together |= self.held_with[member]
        for member in list_bits(joined):
            self.held_with[member] = together
        for other in list_bits(together):
            self.held_with[other] |= joined


class FailingSets:
    """Sets that fail, with all sets of the same classes."""

    def __init__(self, failing: Iterable[Plan], alike: Sequence[int]) -> None:
        self.alone = 0
        """The points that fail by themselves."""
        self.single = 0
        """How many of the sets are a single point."""
        self.together: dict[int, int] = {}
        """By point: the points that fail together with it."""
        self._larger: list[list[int]] = []
        """For each set of three or more points: their classes."""
        self.points = 0
        """All points of these sets."""
        for points in failing:
            classes = [alike[number] for number in list_bits(points)]
            for one in classes:
                self.points |= one
            if len(classes) == 1:
                self.alone |= classes[0]
                self.single += 1
            elif len(classes) == 2:
                for one, other in (classes, classes[::-1]):
                    for number in list_bits(one):
                        self.together[number] = self.together.get(number, 0) | other
            else:
                self._larger.append(classes)

    def find_conflicting(self, plan: Plan) -> int:
        """Return the points that fail by themselves, or with a point of the plan."""
        failing = self.alone
        for number in list_bits(plan):
            failing |= self.together.get(number, 0)
        return failing

    def contains(self, plan: Plan, added: int) -> bool:
        """Whether one of the sets is in the plan, which did not contain any before the points were added."""
        if added & self.alone or any(self.together.get(number, 0) & plan for number in list_bits(added)):
            return True
        return any(all(alike & plan for alike in classes) for classes in self._larger)
