"""A trace exported by another tool: its steps and tool uses in a neutral form, and its conversion to a session."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.model.session import RecordedSession
from holdfast.model.task import RecordedResponse
from holdfast.replay.foreign_json import to_iso, to_json, unpack_json
from holdfast.replay.foreign_messages import ForeignMessage, find_messages, find_question, list_after_question
from holdfast.replay.session_file import DEEPEST, is_too_deep

NO_INPUT = "it has no input that could be the prompt"
_LONGEST = 86_400_000.0
"""Milliseconds of a day; a longer duration is taken for a measuring error."""
_STATUS = re.compile(r"(?<![\d.])([45]\d\d)(?![\d.])")
_UNREACHED = re.compile(r"(?i)connection|timed? ?out|unreachable|refused|reset by peer|name or service")
UNNAMED = "trace"
"""The id of a trace without one; formats.py numbers several of them."""
_WRAPPERS = frozenset(("args", "arguments", "input", "kwargs", "parameters"))
_FAILURE = 400
"""Characters of an error message that a session keeps."""


class TraceUnreadable(UserError):
    """A file from which no trace can be read."""

    default_code = "trace-unreadable"


class LeftOutTrace(Struct, frozen=True):
    """A trace that cannot become a session, and the reason."""

    name: str
    why: str


class SessionsFound(Struct, frozen=True):
    """Sessions in order, the traces or trials that were left out, and notes."""

    sessions: tuple[RecordedSession, ...] = ()
    left_out: tuple[LeftOutTrace, ...] = ()
    notes: tuple[str, ...] = ()


class ToolUse(Struct, frozen=True, kw_only=True):
    """One call of a tool."""

    name: str
    output: Any = None
    error: str = ""
    """The error message; empty if the call succeeded."""
    status: int | None = None
    """The recorded status; if None, it is read from the error message."""
    latency_ms: float = 0.0
    began: float = 0.0
    arguments: Any = None
    """As the trace has them: a map, JSON, or a map inside a map."""


Found = RecordedSession | LeftOutTrace


def build_session(
    id: str,
    asked: Iterable[Any],
    tools: Iterable[ToolUse],
    *,
    name: str,
    source: str,
    began: float | None,
    failure: str,
) -> Found:
    """Return the session of a trace, or the reason why there is none.

    `asked` are values that may hold the prompt, the most likely first.
    """
    id = id or UNNAMED
    question = next((found for value in asked if (found := find_question(value)) is not None), None)
    if question is None:
        return LeftOutTrace(id, NO_INPUT)
    if question.attached:
        return LeftOutTrace(id, f"its question has a part that is not text: {question.attached}")
    responses = _build_responses(sorted((use for use in tools if use.name), key=lambda use: use.began))
    deep = next((response.tool for response in responses if is_too_deep(response)), None)
    if deep is not None:
        return LeftOutTrace(id, f"the result of {deep} is nested deeper than {DEEPEST} levels")
    return RecordedSession(
        id=id,
        turns=question.turns,
        name=name,
        source=source,
        captured_at=to_iso(began),
        context=question.context,
        responses=responses,
        expected_failure=shorten_error(failure),
    )


def _build_responses(uses: Sequence[ToolUse]) -> tuple[RecordedResponse, ...]:
    """Return the recorded responses, with arguments where these tell several calls of one tool apart: the agent may
    call them in another order.
    """
    arguments = [_read_arguments(use.arguments) for use in uses]
    variants: defaultdict[str, set[str]] = defaultdict(set)
    for use, one in zip(uses, arguments, strict=True):
        variants[use.name].add(one)
    return tuple(
        replace(build_response(use), arguments=one if len(variants[use.name]) > 1 else "")
        for use, one in zip(uses, arguments, strict=True)
    )


def _read_arguments(value: Any) -> str:
    """Return a call's arguments as JSON; empty if they are not a map, or nested too deeply for a session file.

    Some exporters wrap them in a map with one key.
    """
    known = unpack_json(value)
    if isinstance(known, dict) and len(known) == 1:
        (inner,) = known.values()
        known = inner if isinstance(inner, dict) and _WRAPPERS.issuperset(known) else known
    if not isinstance(known, dict) or not known:
        return ""
    text = to_json(known)
    return "" if is_too_deep(RecordedResponse("", text)) else text


def build_response(use: ToolUse) -> RecordedResponse:
    """Return the recorded response of a tool; an error without output becomes the response itself."""
    latency = use.latency_ms if 0 <= use.latency_ms < _LONGEST else 0.0
    recorded_status = use.status if use.status is not None and 0 <= use.status <= 599 else None
    if not use.error:
        return RecordedResponse(use.name, to_json(use.output), recorded_status or 200, latency)
    status = recorded_status if recorded_status is not None else find_status(use.error)
    output = use.output if use.output not in (None, "") else shorten_error(use.error)
    return RecordedResponse(use.name, to_json(output), status, latency)


def find_status(error: str) -> int:
    """Return the status code in an error message; 0 if the server was not reached, 500 if it has none."""
    status = _STATUS.search(error)
    if status is not None:
        return int(status[1])
    return 0 if _UNREACHED.search(error) else 500


def shorten_error(error: str) -> str:
    """Return the error in one line: the last line of a traceback, otherwise the first line."""
    lines = [line.strip() for line in error.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return line[:_FAILURE]


def list_tool_uses(messages: Sequence[ForeignMessage]) -> tuple[ToolUse, ...]:
    """Return the tool results found in the messages of a conversation."""
    names = {id: name for message in messages for id, name in message.calls}
    uses = [
        ToolUse(name=name or names.get(id, ""), output=msgspec.json.decode(answer), began=float(n))
        for n, (id, name, answer) in enumerate(result for message in messages for result in message.results)
    ]
    return tuple(use for use in uses if use.name)


def find_last_tool_uses(conversations: Iterable[Sequence[ForeignMessage]]) -> tuple[ToolUse, ...]:
    """Return the tool results after the question of the first conversation that has any."""
    return next((uses for messages in conversations if (uses := list_tool_uses(list_after_question(messages)))), ())


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
