"""Scenarios and the keys that every fault has."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from holdfast.model.scenario import Schedule
from holdfast.reading.durations import Duration
from holdfast.reading.fields import about
from holdfast.spec.sections.forms import Code

LONGEST_GLOB = 1_000
"""A longer glob may take minutes to match."""


class ToolFaultKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every tool fault."""

    tool: Annotated[str, about("The tool: a name or a glob.", min_length=1, max_length=LONGEST_GLOB)]
    mode: Annotated[str, about("The fault.")]
    match_url: Annotated[str | None, about("Act on HTTP requests to this URL glob.", min_length=1)] = None
    raises: Annotated[Code | None, about("The exception class that a Python tool raises.")] = None


class LlmFaultKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every LLM fault."""

    mode: Annotated[str, about("The fault.")]
    raises: Annotated[Code | None, about("The exception class that a Python model function raises.")] = None


class AttackKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every context attack."""

    type: Annotated[str, about("The attack.")]
    trigger_probability: Annotated[float, about("Alias of probability.", ge=0, le=1)] = 1.0
    tool: Annotated[
        str, about("Attack only results of this tool: a name or a glob.", min_length=1, max_length=LONGEST_GLOB)
    ] = "*"
    match_url: Annotated[
        str | None, about("Attack the replies of this URL glob instead of tool results.", min_length=1)
    ] = None


class McpFaultKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every MCP fault."""

    mode: Annotated[str, about("The fault.")]
    tool: Annotated[str, about("The tool: a name or a glob.", min_length=1, max_length=LONGEST_GLOB)] = "*"


class HttpFaultKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every HTTP fault."""

    mode: Annotated[str, about("The fault.")]
    match_url: Annotated[str, about("The URLs: a glob.", min_length=1)] = "*"


class ServiceFaultKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every service fault."""

    service: Annotated[str, about("The service's name in services.", min_length=1)]
    mode: Annotated[str, about("The fault.")]


class WorldFaultKeys(Struct, frozen=True, kw_only=True):
    """Keys of every world fault."""

    mode: Annotated[str, about("The fault.")]
    after_ms: Annotated[Duration | None, about("The time from the start of the trial to the fault, in ms.")] = None
    on_event: Annotated[
        Literal["llm_call", "tool_call", "mcp_call", "http_call", "command", "file_write", "db_write"] | None,
        about("Act at the first such event."),
    ] = None
    after_event: Annotated[dict[str, int] | None, about("Act after the Nth write of the agent, as in {write: 2}.")] = (
        None
    )
