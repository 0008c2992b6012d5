"""Scenarios and the keys that every fault has."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Struct

from holdfast.reading.durations import Duration
from holdfast.reading.fields import about
from holdfast.spec.sections.forms import Code

LONGEST_GLOB = 1_000
"""A longer one may take minutes to be read."""


class ScheduleKeys(Struct, frozen=True, kw_only=True):
    """When a fault fires."""

    probability: Annotated[float, about("Chance that a call meets the fault.", ge=0, le=1)] = 1.0
    after_calls: Annotated[int | None, about("Let so many calls through, then fire.", ge=0)] = None
    times: Annotated[int | None, about("Fire at most so many times, then heal.", ge=1)] = None
    every: Annotated[int | None, about("Fire on each Nth call.", ge=1)] = None
    on_call: Annotated[int | None, about("Fire on exactly the Nth call.", ge=1)] = None
    match: Annotated[dict[str, Any] | None, about("Only calls whose arguments match: name to glob or value.")] = None


class ToolFaultKeys(ScheduleKeys, frozen=True, kw_only=True):
    """Keys of every tool fault."""

    tool: Annotated[str, about("The tool: its name or a glob.", min_length=1, max_length=LONGEST_GLOB)]
    mode: Annotated[str, about("The fault.")]
    match_url: Annotated[str | None, about("Meet HTTP calls to this URL glob.", min_length=1)] = None
    raises: Annotated[Code | None, about("The exception class that a Python tool raises.")] = None


class LlmFaultKeys(ScheduleKeys, frozen=True, kw_only=True):
    """Keys of every LLM fault."""

    mode: Annotated[str, about("The fault.")]
    raises: Annotated[Code | None, about("The exception class that a Python model function raises.")] = None


class AttackKeys(ScheduleKeys, frozen=True, kw_only=True):
    """Keys of every context attack."""

    type: Annotated[str, about("The attack.")]
    trigger_probability: Annotated[float, about("Another word for probability.", ge=0, le=1)] = 1.0
    tool: Annotated[
        str, about("Attack only this tool's results: its name or a glob.", min_length=1, max_length=LONGEST_GLOB)
    ] = "*"
    match_url: Annotated[
        str | None, about("Attack the replies of this URL glob instead of tool results.", min_length=1)
    ] = None


class McpFaultKeys(ScheduleKeys, frozen=True, kw_only=True):
    """Keys of every MCP fault."""

    mode: Annotated[str, about("The fault.")]
    tool: Annotated[str, about("The tool: its name or a glob.", min_length=1, max_length=LONGEST_GLOB)] = "*"


class HttpFaultKeys(ScheduleKeys, frozen=True, kw_only=True):
    """Keys of every HTTP fault."""

    mode: Annotated[str, about("The fault.")]
    match_url: Annotated[str, about("Which URLs: a glob.", min_length=1)] = "*"


class ServiceFaultKeys(ScheduleKeys, frozen=True, kw_only=True):
    """Keys of every service fault."""

    service: Annotated[str, about("The service, by its name in services.", min_length=1)]
    mode: Annotated[str, about("The fault.")]


class WorldFaultKeys(Struct, frozen=True, kw_only=True):
    """Keys of every world fault."""

    mode: Annotated[str, about("The fault.")]
    after_ms: Annotated[Duration | None, about("When it begins, from the start of the trial.")] = None
    on_event: Annotated[
        Literal["llm_call", "tool_call", "mcp_call", "http_call", "command", "file_write", "db_write"] | None,
        about("Begins at the first such event."),
    ] = None
