"""Explains why a fault was never met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.model.observation import list_unread_models
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.score import CellCause

NOT_CALLED, CALLED, NO_EFFECT, ERASED, BROKEN = 0, 1, 2, 3, 4
"""How close the agent came to the fault; the closest is stored."""

_SHOWN = 3
"""Other calls that are named if the right one is missing."""
_PLANES = ("llm", "http", "mcp", "service", "unread")
"""Planes whose calls are counted by plane; those of tools are counted by tool."""
_SEEN = {"llm": "models asked", "http": "requests seen", "mcp": "MCP tools called", "tool": "tools called"}
"""The word for other calls, by the kind of the expected call."""


NO_REASON = CellCause("", "")
"""A plain pass needs none."""


def explain_unmet(
    scenario: Scenario, indexes: Iterable[int], near: int, detail: str = "", *, requests: bool = True
) -> CellCause:
    """Return why a cell that passed proves nothing: it met none of these injections.

    `detail` names the other calls, the arguments that did not match, or why a fault that fired changed nothing.
    `requests` says whether a request of the agent came through the proxy.
    """
    placed = [scenario.injections[i] for i in sorted(indexes)]
    waiting = [injection for injection in placed if _get_target_kind(injection)]
    names = list(dict.fromkeys(map(_describe_target, waiting)))
    # The code names the nearest miss. How near the agent came decides the advice: a fault without effect needs another
    # fault, a fault that was not due another schedule, a target that was never called another prompt.
    if near == ERASED:
        code, why = "fault-erased", "it fired, but another fault on the same call hid it"
    elif near == NO_EFFECT:
        code, why = "fault-changed-nothing", f"it fired, but changed nothing{f' ({detail})' if detail else ''}"
    elif not waiting:
        code, why = "fault-not-due", "its schedule selected no call"
    elif near == CALLED:
        code, why = _explain_called(waiting, names, detail)
    else:
        unseen = not requests and any(_get_target_kind(injection) == "http" for injection in waiting)
        code = "fault-no-request" if unseen else "fault-not-called"
        why = "; ".join(dict.fromkeys(filter(None, (*_describe_missing(waiting), detail))))
    return CellCause(f"the fault was never met: {why}", code, tuple(names))


def _explain_called(waiting: Sequence[Injection], names: list[str], detail: str) -> tuple[str, str]:
    """Return the code and the sentence if the agent called the faults' target."""
    wanted = next((i.schedule.match for i in waiting if i.schedule.match), None)
    if not detail or wanted is None:
        return (
            "fault-not-due",
            f"the agent called {_join_names(names)}, but the fault's schedule selected none of these calls",
        )
    from holdfast.planes.describe import describe

    wanted_arguments = ", ".join(f"{name}: {describe(value)}" for name, value in wanted.items())
    return (
        "fault-no-match",
        f"the agent called {_join_names(names)}, but no call matched {wanted_arguments}; the calls had {detail}",
    )


def has_target_call(placed: Iterable[Injection], calls: Mapping[str, int]) -> bool:
    """Return whether a call went to the target of one of the injections."""
    from holdfast.planes.injection.active_injection import can_act_on

    return any(can_act_on(injection, *split_call(name)) for injection in placed for name in calls)


def describe_other_calls(placed: Iterable[Injection], calls: Mapping[str, int]) -> str:
    """Describe the calls on the planes of the injections; empty if there were none."""
    texts = []
    for kind in dict.fromkeys(filter(None, map(_get_target_kind, placed))):
        planes = ("tool", "mcp") if kind == "tool" else (kind,)
        targets = [target.partition("?")[0] for plane, target in map(split_call, calls) if plane in planes]
        if kind in _SEEN and targets:
            texts.append(f"{_SEEN[kind]}: {_list_names(list(dict.fromkeys(targets)))}")
        elif kind == "http":
            texts.append("no request passed the proxy")
        if kind == "llm":
            texts += [f"{place}, which Holdfast does not read" for place in list_unread_models(calls)]
    return "; ".join(texts)


def _get_target_kind(injection: Injection) -> str:
    """Return what the fault waits for: a model, a request, an MCP tool, its listing, a tool.

    Empty if it is in the task.
    """
    if injection.plane == "http" or injection.match_url is not None:
        return "http"
    if injection.plane == "mcp":
        from holdfast.plugins import get_fault_traits

        return "listing" if get_fault_traits(injection.plane, injection.mode).on_listings else "mcp"
    if injection.plane == "context":
        return "" if injection.target == "input" else "tool"
    return "" if injection.plane == "world" else injection.plane


def split_call(name: str) -> tuple[str, str]:
    """Return the plane and the target of a counted call."""
    plane, colon, target = name.partition(":")
    return (plane, target) if colon and plane in _PLANES else ("tool", name)


def _describe_missing(waiting: Sequence[Injection]) -> Iterable[str]:
    """Describe what did not happen, by the kind of the expected call."""
    calls = [
        _describe_target(injection) for injection in waiting if _get_target_kind(injection) not in ("http", "listing")
    ]
    urls = [_describe_target(injection) for injection in waiting if _get_target_kind(injection) == "http"]
    listed = [injection.target for injection in waiting if _get_target_kind(injection) == "listing"]
    if calls:
        yield f"the agent did not call {_join_names(list(dict.fromkeys(calls)))}"
    if urls:
        yield f"no request matched {_join_names(list(dict.fromkeys(urls)))}"
    if listed:
        yield f"no MCP server listed the tool {_join_names(list(dict.fromkeys(listed)))}"


def _describe_target(injection: Injection) -> str:
    """Return what the agent has to call to meet the fault."""
    kind, target = _get_target_kind(injection), injection.target
    if kind == "http":
        return injection.match_url or target
    if kind == "llm":
        return "its model" if target == "*" else f"the model {target}"
    if kind in ("mcp", "listing"):
        return "an MCP tool" if target == "*" else f"the MCP tool {target}"
    if kind == "service":
        return f"the service {target}"
    return "any tool" if target == "*" else target


def _join_names(names: list[str]) -> str:
    listed = names[:4] + ([f"{len(names) - 4} more"] if len(names) > 4 else [])
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def _list_names(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
