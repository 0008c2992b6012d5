"""A trace of another tool, in neutral form, and the session it becomes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from holdfast.model.session import RecordedSession
from holdfast.model.task import RecordedResponse
from holdfast.replay.foreign_json import as_json, iso
from holdfast.replay.foreign_messages import AskedQuestion, ForeignMessage, question
from holdfast.replay.session_file import DEEPEST, too_deep

NO_INPUT = "it has no input: nothing says what was asked"
_LONGEST = 86_400_000.0
"""Milliseconds of a day: what took longer was not timed well."""
_STATUS = re.compile(r"(?<![\d.])([45]\d\d)(?![\d.])")
_UNREACHED = re.compile(r"(?i)connection|timed? ?out|unreachable|refused|reset by peer|name or service")
UNNAMED = "trace"
"""The id of a trace that has none; of several, formats.py numbers them."""
_FAILURE = 400
"""Characters of what went wrong that a session keeps."""


class LeftOutTrace(Struct, frozen=True):
    """A trace that becomes no session, and why."""

    name: str
    why: str


class ToolUse(Struct, frozen=True):
    """One call of a tool."""

    tool: str
    output: Any = None
    error: str = ""
    """What went wrong; empty if nothing did."""
    status: int | None = None
    """As it was said; None: as the error says."""
    latency_ms: float = 0.0
    began: float = 0.0


class ForeignTrace(Struct, frozen=True):
    """What one trace tells of a session."""

    id: str
    asked: tuple[Any, ...]
    """What may hold the question, the best first."""
    tools: tuple[ToolUse, ...] = ()
    name: str = ""
    source: str = ""
    began: float | None = None
    failure: str = ""


Found = RecordedSession | LeftOutTrace


def session_of(trace: ForeignTrace) -> Found:
    """The session of a trace, or why there is none."""
    asked = _asked(trace.asked)
    if asked is None:
        return LeftOutTrace(trace.id or UNNAMED, NO_INPUT)
    named = sorted((use for use in trace.tools if use.tool), key=lambda one: one.began)
    responses = tuple(map(response_of, named))
    deep = next((one.tool for one in responses if too_deep(one)), None)
    if deep is not None:
        return LeftOutTrace(trace.id, f"what {deep} answered is nested deeper than {DEEPEST} levels")
    return RecordedSession(
        id=trace.id or UNNAMED,
        turns=asked.turns,
        name=trace.name,
        source=trace.source,
        captured_at=iso(trace.began),
        context=asked.context,
        responses=responses,
        expected_failure=one_failure(trace.failure),
    )


def response_of(use: ToolUse) -> RecordedResponse:
    """What a tool answered; an error has a status, and itself as the answer where there is no other."""
    latency = use.latency_ms if 0 <= use.latency_ms < _LONGEST else 0.0
    said_status = use.status if use.status is not None and 0 <= use.status <= 599 else None
    if not use.error:
        return RecordedResponse(use.tool, as_json(use.output), said_status or 200, latency)
    status = said_status if said_status is not None else error_status(use.error)
    said = use.output if use.output not in (None, "") else one_failure(use.error)
    return RecordedResponse(use.tool, as_json(said), status, latency)


def error_status(error: str) -> int:
    """The status that an error tells of; 0 if nobody was reached, 500 if it does not say."""
    said = _STATUS.search(error)
    if said is not None:
        return int(said[1])
    return 0 if _UNREACHED.search(error) else 500


def one_failure(error: str) -> str:
    """An error in a line: of a traceback its first, or the exception that ends it."""
    lines = [line.strip() for line in error.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return line[:_FAILURE]


def tools_in_messages(said: Sequence[ForeignMessage]) -> tuple[ToolUse, ...]:
    """What tools answered, as the messages of a conversation tell it."""
    names = {id: name for one in said for id, name in one.calls}
    uses = [
        ToolUse(name or names.get(id, ""), _value(answer), began=float(n))
        for n, (id, name, answer) in enumerate(result for one in said for result in one.results)
    ]
    return tuple(use for use in uses if use.tool)


def _value(answer: str) -> Any:
    import msgspec

    return msgspec.json.decode(answer)


def _asked(values: Iterable[Any]) -> AskedQuestion | None:
    return next((found for value in values if (found := question(value)) is not None), None)
