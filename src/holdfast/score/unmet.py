"""Why a fault was never met, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from holdfast.model.spec import Injection, Scenario

NOT_CALLED, CALLED, NO_EFFECT = 0, 1, 2
"""How near the agent came to the fault; the nearest is kept."""

_MODEL = "llm:"
"""Calls of model functions are counted under this prefix."""


def never_met(scenario: Scenario, indexes: Iterable[int], near: int) -> str:
    """The reason of a cell that passed without meeting any of these injections."""
    placed = [scenario.injections[i] for i in sorted(indexes)]
    names = list(dict.fromkeys(filter(None, map(_callee, placed))))
    if near == NO_EFFECT:
        return "the fault was never met: it fired, but changed nothing"
    if not names:
        return "the fault was never met: it was not due"
    if near == CALLED:
        return f"the fault was never met: the agent called {_joined(names)}, but the fault was not due"
    return f"the fault was never met: the agent did not call {_joined(names)}"


def was_called(placed: Iterable[Injection], calls: Mapping[str, int]) -> bool:
    """Whether a call went where one of the injections waits."""
    return any(_waits(injection, name) for injection in placed for name in calls)


def _waits(injection: Injection, name: str) -> bool:
    if injection.plane == "llm":
        return name.startswith(_MODEL)
    return not name.startswith(_MODEL) and fnmatchcase(name, injection.target)


def _callee(injection: Injection) -> str:
    """What the agent has to call to meet the fault; nothing for one that comes with the task."""
    if injection.plane == "llm":
        return "its model"
    if injection.plane == "context" and injection.target == "input":
        return ""
    return "any tool" if injection.target == "*" else injection.target


def _joined(names: list[str]) -> str:
    shown = names[:4] + ([f"{len(names) - 4} more"] if len(names) > 4 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
