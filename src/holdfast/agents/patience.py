"""How long a turn may take: `agent.timeout`, or what is left of its trial's time if that is less."""

from __future__ import annotations

from math import inf

from holdfast.protocols import Trip


def left_s(trip: Trip) -> float:
    """What is left of the trial's time, never below 0."""
    return inf if trip.house is None else max(0.0, trip.house.time_left_s())


def patience_ms(timeout_ms: float, trip: Trip) -> float:
    """For the turn that begins now."""
    return min(timeout_ms, left_s(trip) * 1000)
