"""Why a fault was never met, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.model.observation import unread_models
from holdfast.model.scenario import Injection, Scenario

NOT_CALLED, CALLED, NO_EFFECT, ERASED, BROKEN = 0, 1, 2, 3, 4
"""How near the agent came to the fault; the nearest is kept."""

_SHOWN = 3
"""Calls that are named where none was the right one."""
_PLANES = ("llm", "http", "mcp", "service", "unread")
"""Planes whose calls are counted under their name; those of tools are counted under the tool's."""
_SEEN = {"llm": "models asked", "http": "requests seen", "mcp": "MCP tools called", "tool": "tools called"}
"""What else was called, by the kind of what is waited for."""


class Why(NamedTuple):
    """Why a cell is no plain pass: what to tell people, and what to compare."""

    reason: str = ""
    code: str = ""
    key: tuple[str, ...] = ()
    ending: str = ""
    """How the trial ended, where that decided it."""


NO_REASON = Why()


def never_met(scenario: Scenario, indexes: Iterable[int], near: int, beside: str = "", *, requests: bool = True) -> Why:
    """Why a cell that passed proves nothing: it met none of these injections.

    `beside` is what was called instead, what the calls had that did not match, or why a fault that fired changed
    nothing; `requests`: some request of the agent came through the proxy.
    """
    placed = [scenario.injections[i] for i in sorted(indexes)]
    waiting = [injection for injection in placed if _kind(injection)]
    names = list(dict.fromkeys(map(_named, waiting)))
    if near == ERASED:
        code, why = "fault-erased", "it fired, but another fault on the same call hid it"
    elif near == NO_EFFECT:
        code, why = "fault-changed-nothing", f"it fired, but changed nothing{f' ({beside})' if beside else ''}"
    elif not waiting:
        code, why = "fault-not-due", "it was not due"
    elif near == CALLED:
        code, why = _called(waiting, names, beside)
    else:
        unseen = not requests and any(_kind(injection) == "http" for injection in waiting)
        code = "fault-no-request" if unseen else "fault-not-called"
        why = "; ".join(dict.fromkeys(filter(None, (*_missing(waiting), beside))))
    return Why(f"the fault was never met: {why}", code, tuple(names))


def _called(waiting: Sequence[Injection], names: list[str], beside: str) -> tuple[str, str]:
    """Code and words where the agent called what the faults wait for."""
    wanted = next((i.schedule.match for i in waiting if i.schedule.match), None)
    if not beside or wanted is None:
        return "fault-not-due", f"the agent called {_joined(names)}, but the fault was not due"
    from holdfast.planes.describe import describe

    asked = ", ".join(f"{name}: {describe(value)}" for name, value in wanted.items())
    return "fault-no-match", f"the agent called {_joined(names)}, but no call matched {asked}; the calls had {beside}"


def was_called(placed: Iterable[Injection], calls: Mapping[str, int]) -> bool:
    """Whether a call went where one of the injections waits."""
    from holdfast.planes.injection.weather import faces

    return any(faces(injection, *_call(name)) for injection in placed for name in calls)


def called_instead(placed: Iterable[Injection], calls: Mapping[str, int]) -> str:
    """What was called on the planes where the injections wait, in a few words; empty if nothing was."""
    told = []
    for kind in dict.fromkeys(filter(None, map(_kind, placed))):
        planes = ("tool", "mcp") if kind == "tool" else (kind,)
        seen = [target.partition("?")[0] for plane, target in map(_call, calls) if plane in planes]
        if kind in _SEEN and seen:
            told.append(f"{_SEEN[kind]}: {_listed(list(dict.fromkeys(seen)))}")
        elif kind == "http":
            told.append("no request passed the proxy")
        if kind == "llm":
            told += [f"{place}, which Holdfast does not read" for place in unread_models(calls)]
    return "; ".join(told)


def _kind(injection: Injection) -> str:
    """What the fault waits for: a model, a request, an MCP tool, its listing, a tool; nothing if it is in the task."""
    if injection.plane == "http" or injection.match_url is not None:
        return "http"
    if injection.plane == "mcp":
        from holdfast.plugins import fault_traits

        return "listing" if fault_traits(injection.plane, injection.mode).on_listings else "mcp"
    if injection.plane == "context":
        return "" if injection.target == "input" else "tool"
    return "" if injection.plane == "world" else injection.plane


def plane_of(name: str) -> str:
    """The plane that a count of calls is of."""
    return _call(name)[0]


def _call(name: str) -> tuple[str, str]:
    """The plane and the target that a count is of."""
    plane, colon, target = name.partition(":")
    return (plane, target) if colon and plane in _PLANES else ("tool", name)


def _missing(waiting: Sequence[Injection]) -> Iterable[str]:
    """What did not happen, by the kind of what is waited for."""
    calls = [_named(injection) for injection in waiting if _kind(injection) not in ("http", "listing")]
    urls = [_named(injection) for injection in waiting if _kind(injection) == "http"]
    listed = [injection.target for injection in waiting if _kind(injection) == "listing"]
    if calls:
        yield f"the agent did not call {_joined(list(dict.fromkeys(calls)))}"
    if urls:
        yield f"no request matched {_joined(list(dict.fromkeys(urls)))}"
    if listed:
        yield f"no MCP server listed the tool {_joined(list(dict.fromkeys(listed)))}"


def _named(injection: Injection) -> str:
    """What the agent has to call to meet the fault."""
    kind, target = _kind(injection), injection.target
    if kind == "http":
        return injection.match_url or target
    if kind == "llm":
        return "its model" if target == "*" else f"the model {target}"
    if kind in ("mcp", "listing"):
        return "an MCP tool" if target == "*" else f"the MCP tool {target}"
    if kind == "service":
        return f"the service {target}"
    return "any tool" if target == "*" else target


def _joined(names: list[str]) -> str:
    shown = names[:4] + ([f"{len(names) - 4} more"] if len(names) > 4 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
