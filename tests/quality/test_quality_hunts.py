"""A hunt finds the planted defects that need one, two and three faults, and nothing in their repaired twins."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct
from quality_run import HUNTS, hunt_spec, lay_out


class PlantedCase(Struct, frozen=True):
    """An agent of `hunts/`, and the smallest cause that a hunt must find."""

    name: str
    rule: str
    faults: dict[tuple[str, int], str]
    """By target and call, the mode; `*` where several do."""


CASES = (
    PlantedCase("charges_again", "charges-once", {("charge", 1): "lost_reply"}),
    PlantedCase("trusts_the_fallback", "its-own-price", {("price_list", 2): "stale", ("archive", 1): "*"}),
    PlantedCase(
        "hides_a_timeout",
        "tells-the-truth",
        {("first_hotel", 1): "*", ("second_hotel", 1): "*", ("cancel_flight", 1): "timeout"},
    ),
)
MAX_TRIALS = 300


def every_case() -> pytest.MarkDecorator:
    """All of them. Faults that make the agent wait take most of the time."""
    long = {case.name: [pytest.mark.long] * (len(case.faults) > 1) for case in CASES}
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name, marks=long[case.name]) for case in CASES])


@every_case()
def test_the_defect_is_found_with_no_fault_too_many(case: PlantedCase, tmp_path: Path) -> None:
    found = hunt_spec(lay_out(case.name, "defect", tmp_path, HUNTS), len(case.faults), MAX_TRIALS)
    assert {rule for cause in found.causes for rule in cause.rules} == {case.rule}
    smallest = min(found.causes, key=lambda cause: len(cause.faults))
    modes = {(fault["target"], fault["on_call"]): fault["mode"] for fault in smallest.faults}
    assert {place: mode if case.faults.get(place) != "*" else "*" for place, mode in modes.items()} == case.faults
    assert all(cause.calm_failed == 0 for cause in found.causes)
    assert found.exit_code == 1


@every_case()
def test_nothing_is_found_in_the_twin(case: PlantedCase, tmp_path: Path) -> None:
    found = hunt_spec(lay_out(case.name, "twin", tmp_path, HUNTS), len(case.faults), MAX_TRIALS)
    assert (found.causes, found.flaky) == ((), ())
    assert found.coverage.points.held > 0
