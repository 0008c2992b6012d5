"""Faults and checks as values, validated by the file's schema as soon as they are made."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from holdfast.api.entry_points import add_details, find_caller
from holdfast.errors import SpecError, UsageError
from holdfast.model.scenario import Plane
from holdfast.reading.node import Node, build_node
from holdfast.reading.reader import Bad, Reader
from holdfast.reading.words import suggest_name
from holdfast.spec.rules.fault_entry import FAMILIES, Family, read_faults
from holdfast.spec.rules.rules import choose_check
from holdfast.spec.rules.variants import read_settings


class FaultValue(Struct, frozen=True):
    """A fault, for a list of faults of a scenario."""

    plane: Plane
    mode: str
    settings: dict[str, Any]

    @property
    def family(self) -> Family:
        """The family of its plane, with the name of the list that it belongs to."""
        return next(one for one in FAMILIES.values() if one.plane == self.plane)

    @property
    def entry(self) -> dict[str, Any]:
        """The entry as in a file."""
        return {self.family.selector: self.mode, **self.settings}


class CheckValue(Struct, frozen=True):
    """A check, for the `check` of a rule."""

    type: str
    settings: dict[str, Any]

    @property
    def entry(self) -> dict[str, Any]:
        """The entry as in a file."""
        return {"type": self.type, **self.settings}


def fault(plane: Plane, mode: str, **settings: Any) -> FaultValue:
    """Return a fault of a plane: `fault("tool", "error", tool="find_item")`. It takes the same settings as in a file.

    Raises SpecError for an unknown mode or setting, or a bad value.
    """
    planes = [one.plane for one in FAMILIES.values()]
    if plane not in planes:
        hint = suggest_name(str(plane), planes, label="planes")
        raise UsageError(f"there is no plane {plane!r}", hint=hint, code="name-unknown")
    value = FaultValue(plane, mode, settings)
    where, reader, name = find_caller(), Reader(), value.family.name
    read_faults(reader, name, build_node([value.entry], Node("null", where.line, 1, path=name)))
    _refuse(reader, where.path)
    return value


def check(type: str, /, **written_settings: Any) -> CheckValue:
    """Return a check of that type: `check("contains", value="cannot see the stock")`.

    Raises SpecError for an unknown type or setting, or a bad value.
    """
    value = CheckValue(type, written_settings)
    where, reader = find_caller(), Reader()
    node = build_node(value.entry, Node("null", where.line, 1, path="check"))
    choice = choose_check(reader, node)
    if not isinstance(choice, Bad):
        read_settings(reader, choice, node, ["type"])
    _refuse(reader, where.path)
    return value


def _refuse(reader: Reader, path: str) -> None:
    if any(problem.severity == "error" for problem in reader.problems):
        raise add_details(SpecError(path, reader.problems))
