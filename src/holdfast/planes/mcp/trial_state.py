"""What the MCP plane knows of one trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.planes.mcp.call_trace import McpCallTrace
from holdfast.planes.mcp.declared_schema import DeclaredSchema, declared
from holdfast.planes.mcp.results import PLAIN, ResultShape, form

_NAMES_KEPT = 10_000
"""Tools of one trial that are remembered: a server that lists without end does not fill the memory."""


class McpTrialState:
    """The tools that were listed or called, and the calls under way."""

    def __init__(self) -> None:
        self.tools: dict[str, ResultShape] = {}
        """The tools that were seen, each with the form of its results."""
        self.lost: set[str] = set()
        """Ids of HTTP sessions that a fault has ended."""
        self.open: set[McpCallTrace] = set()
        self.schemas: dict[str, DeclaredSchema | None] = {}
        """By tool that was listed: what it declares for its results; None if it declares nothing."""
        self._counts: dict[tuple[str, str], int] = {}

    def knows(self, tool: str, shape: ResultShape | None = None) -> None:
        """Remembers a tool."""
        if tool in self.tools or len(self.tools) < _NAMES_KEPT:
            self.tools[tool] = shape or self.tools.get(tool, PLAIN)

    def lists(self, name: str, tool: Mapping[str, Any]) -> None:
        """Remembers a tool as its server lists it."""
        self.knows(name, form(tool))
        if name in self.tools:
            self.schemas[name] = declared(tool)

    def nth(self, plane: str, target: str) -> int:
        """Counts what is no call of a tool: a listing, a reading."""
        key = (plane, target)
        if key in self._counts or len(self._counts) < _NAMES_KEPT:
            self._counts[key] = self._counts.get(key, 0) + 1
        return self._counts.get(key, 1)

    def lose(self, session: str) -> None:
        """A fault ended an HTTP session: it is unknown from now on."""
        if len(self.lost) < _NAMES_KEPT:
            self.lost.add(session)

    def leave(self) -> None:
        """The trial is over: calls that are still open are told as such."""
        for sighting in list(self.open):
            sighting.left()
        self.open.clear()
