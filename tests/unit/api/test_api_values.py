"""Faults and checks as values: what a file would refuse is refused when they are made, at the caller's line."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast.errors import UsageError


def test_a_fault_is_what_a_file_would_have() -> None:
    made = holdfast.fault("tool", "error", tool="find_item", error_code=500)
    assert made.entry == {"mode": "error", "tool": "find_item", "error_code": 500}
    assert holdfast.fault("context", "memory_poisoning").entry == {"type": "memory_poisoning"}


def test_a_check_is_what_a_file_would_have() -> None:
    assert holdfast.check("contains", value="x").entry == {"type": "contains", "value": "x"}


@pytest.mark.parametrize(
    ("plane", "mode", "settings", "said"),
    [
        ("tool", "eror", {}, "did you mean error?"),
        ("tool", "error", {"tol": "x"}, "unknown key"),
        ("tool", "error", {"probability": 3}, "tool_faults[0].probability"),
        ("llm", "error_in_body", {}, "llm_faults[0].mode"),
    ],
)
def test_a_fault_that_no_file_could_have_is_refused_at_once(
    plane: Any, mode: str, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(holdfast.SpecError) as refused:
        holdfast.fault(plane, mode, **settings)
    note = str(refused.value)
    assert said in note
    assert f"{__file__.rpartition('/')[2]}:" in note


def test_a_plane_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="no plane 'tools'"):
        holdfast.fault("tools", "error")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type", "settings"), [("contians", {"value": "x"}), ("contains", {"valu": "x"}), ("contains", {})]
)
def test_a_check_that_no_file_could_have_is_refused_at_once(type: str, settings: dict[str, Any]) -> None:
    with pytest.raises(holdfast.SpecError):
        holdfast.check(type, **settings)
