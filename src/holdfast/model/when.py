"""The meaning of `when`. The faults that a scenario declares decide it, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.model.scenario import Scenario
from holdfast.model.spec import When

PLANES: Mapping[str, frozenset[str]] = {
    "tool_faults_active": frozenset({"tool", "mcp"}),
    "llm_faults_active": frozenset({"llm"}),
}
"""The planes that a `when` can name."""


def find_needed_injections(when: When, scenario: Scenario) -> frozenset[int]:
    """Return the indexes of the injections that must be met for a rule with this `when` to count under chaos."""
    planes = PLANES.get(when)
    return frozenset(i for i, x in enumerate(scenario.injections) if planes is None or x.plane in planes)


def is_applicable(when: When, scenario: Scenario) -> bool:
    """Whether a rule with this `when` is judged in the scenario."""
    if when == "always":
        return True
    if when == "no_chaos":
        return scenario.calm
    return bool(find_needed_injections(when, scenario))
