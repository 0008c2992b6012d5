"""Each module of `protocols/` that a plug-in author reads has an example, and the example is what it says."""

from __future__ import annotations

import textwrap
from dataclasses import is_dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

EXAMPLES = {
    "fault": ("SoldOut", "WireFault"),
    "world_fault": ("Tidied", "WorldFault"),
    "check": ("Brief", "Check"),
    "service": ("Echo", "ServiceKind"),
    "sandbox": ("Jail", "SandboxBackend"),
    "reporter": ("OneWord", "Reporter"),
    "executor": ("Cautious", "Executor"),
    "planner": ("EachOnce", "Planner"),
}
GIVEN = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
from holdfast.execute.local import LocalExecutor
from holdfast.model.traits import FaultTraits
from holdfast.model.world import SandboxTraits, ServiceTraits
"""


def example_in(module: ModuleType) -> Any:
    """The class that the docstring shows, made."""
    assert module.__doc__
    code = "\n".join(line for line in module.__doc__.splitlines() if line.startswith("    ") or not line)
    space = dict(vars(module))
    exec(GIVEN + textwrap.dedent(code), space)
    return space[EXAMPLES[module.__name__.rpartition(".")[2]][0]]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_all_that_its_protocol_asks_for(name: str) -> None:
    module = import_module(f"holdfast.protocols.{name}")
    shown, protocol = example_in(module), vars(module)[EXAMPLES[name][1]]
    asked = [*vars(protocol).get("__annotations__", {}), *(one for one in vars(protocol) if not one.startswith("_"))]
    assert [one for one in asked if one not in dir(shown)] == []
    assert is_dataclass(shown) == ("@dataclass" in (module.__doc__ or ""))
