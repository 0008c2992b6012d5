"""The steps of a trace in a form that does not depend on the tool that recorded them, and the sessions they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from holdfast.replay.foreign_messages import find_messages
from holdfast.replay.foreign_trace import Found, ToolUse, build_session, find_last_tool_uses

TraceStepKind: TypeAlias = Literal["agent", "model", "tool", ""]
PromptStep: TypeAlias = Literal["root", "agent", "model"]


class TraceStep(ToolUse, frozen=True, kw_only=True):
    """One step: a call of an agent, a model or a tool, or anything else that was recorded."""

    trace: str
    id: str
    parent: str
    kind: TraceStepKind = ""
    inputs: tuple[Any, ...] = ()
    """Values that may hold the prompt or the messages, the most likely first."""


def build_sessions(
    steps: Iterable[TraceStep], source: str, prompts: Sequence[PromptStep] = ("root", "model")
) -> Iterator[Found]:
    """Yield a session for every trace; `prompts` says which steps are searched for the prompt first."""
    traces: defaultdict[str, list[TraceStep]] = defaultdict(list)
    for step in steps:
        traces[step.trace].append(step)
    for trace, inside in traces.items():
        yield _build_session(trace, sorted(inside, key=lambda step: step.began), source, prompts)


def _build_session(id: str, steps: list[TraceStep], source: str, prompts: Sequence[PromptStep]) -> Found:
    ids = {step.id for step in steps}
    roots = [step for step in steps if step.parent not in ids] or steps[:1]
    agents, models = ([step for step in steps if step.kind == kind] for kind in ("agent", "model"))
    by_role = {"root": roots, "agent": agents, "model": models}
    main = [*agents[:1], *roots]
    # Tools without steps of their own: the last model call has their results in its messages.
    conversations = (find_messages(value) for step in reversed(models) for value in step.inputs)
    return build_session(
        id,
        (value for role in prompts for step in by_role[role] for value in step.inputs),
        tuple(_list_outer_tools(steps)) or find_last_tool_uses(conversations),
        name=next((step.name for step in main if step.name), ""),
        source=source,
        began=main[0].began or None,
        failure=next((step.error for step in main if step.error), ""),
    )


def _list_outer_tools(steps: Sequence[TraceStep]) -> Iterator[TraceStep]:
    """Yield the tools that the agent called. A tool in a tool, such as its MCP request, is part of the same call."""
    # In a replay the recorded response answers the outer call, so the tool does not run and calls nothing. In a broken
    # trace steps may be each other's parents, so each is visited once.
    by_id = {step.id: step for step in steps}
    for step in steps:
        above, visited = by_id.get(step.parent), {step.id}
        while above is not None and above.kind != "tool" and above.id not in visited:
            visited.add(above.id)
            above = by_id.get(above.parent)
        if step.kind == "tool" and (above is None or above.kind != "tool"):
            yield step
