"""The MCP plane's state for one trial: its tools, their declarations, and the calls in progress."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import UNSET, UnsetType

from holdfast.model.codec import digest, encode_canonical, make_encodable
from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT, TraceEvent
from holdfast.planes.call_report import CallReport
from holdfast.planes.describe import digest_arguments, find_cut_canaries
from holdfast.planes.mcp.results import PLAIN, ResultShape, read_result_shape
from holdfast.planes.recorded_value import write_reply
from holdfast.protocols.fault import Call
from holdfast.protocols.trial import TrialContext
from holdfast.reading.json_values import build_validator

NAMES_KEPT = 10_000
"""Maximum number of tools, or lost sessions, remembered per trial: it bounds memory if a server lists endlessly."""


class McpTrialState:
    """The tools that were listed or called, and the calls in progress."""

    def __init__(self) -> None:
        self.tools: dict[str, ResultShape] = {}
        """The known tools, each with its result format."""
        self.lost_sessions: set[str] = set()
        """Ids of HTTP sessions that a fault has ended."""
        self.open: set[McpCallTrace] = set()
        self.schemas: dict[str, DeclaredSchema | None] = {}
        """By listed tool: the declared result schema; None if it declares none."""
        self._counts: dict[tuple[str, str], int] = {}

    def add_tool(self, tool: str, shape: ResultShape | None = None) -> None:
        """Remember a tool."""
        if tool in self.tools or len(self.tools) < NAMES_KEPT:
            self.tools[tool] = shape or self.tools.get(tool, PLAIN)

    def add_listed_tool(self, name: str, tool: Mapping[str, Any]) -> None:
        """Remember a tool as its server lists it."""
        self.add_tool(name, read_result_shape(tool))
        if name in self.tools:
            schema = tool.get("outputSchema")
            self.schemas[name] = DeclaredSchema(schema) if isinstance(schema, dict) else None

    def count_request(self, plane: str, target: str) -> int:
        """Count a request that is not a tool call: a listing, a read."""
        key = (plane, target)
        if key in self._counts or len(self._counts) < NAMES_KEPT:
            self._counts[key] = self._counts.get(key, 0) + 1
        return self._counts.get(key, 1)

    def end_trial(self) -> None:
        """Report the calls that are open at the end of the trial as unfinished."""
        for call_trace in list(self.open):
            call_trace.report_unfinished()
        self.open.clear()


class McpCallTrace(CallReport):
    """One call from its arrival to its end; it is reported once."""

    def __init__(self, context: TrialContext, server: str, call: Call) -> None:
        super().__init__(context, call.plane, call.target, call.n)
        self._server = server
        self._call = call

    def report_unfinished(self) -> None:
        """Report a call that nobody waits for any more."""
        if not self._is_reported:
            self.report_end(error_type="cancelled", finished=False)

    def report_end(
        self,
        output: str = "",
        *,
        status: int | None = None,
        error_type: str = "",
        whole: Any = None,
        finished: bool = True,
    ) -> None:
        """Report a call whose end the agent saw; `whole` is the complete result, if its text is not all of it."""
        call, self.status, self.error_type = self._call, status, error_type
        arguments, text = encode_canonical(dict(call.arguments)).decode(), _shorten_text(output)
        self.report(
            TraceEvent(
                self.began,
                "mcp_call",
                tool=call.target,
                plane=call.plane,
                phase="done" if finished else "unfinished",
                input=_shorten_text(arguments),
                output=text,
                write=True,
                digest=digest(
                    f"{self._server}\n{call.target}\n{digest_arguments(call.arguments)}".encode(errors="replace")
                ),
                canaries=find_cut_canaries(arguments),
                reply="" if whole is None and text == output else write_reply(output if whole is None else whole),
            )
        )


def _shorten_text(text: str) -> str:
    return make_encodable(shorten(text, TEXT_KEPT))


REFUSED = "the client rejects it: it does not match the schema that the tool declares"


class DeclaredSchema:
    """The schema of one tool, compiled on first use."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    @cached_property
    def _validator(self) -> Any:
        try:
            return build_validator(self._schema)
        except ValueError:
            return None

    def is_valid(self, structured: Any) -> bool | None:
        """Return whether it is valid; None if unknown: the schema is invalid, or refers to something outside it."""
        try:
            return None if self._validator is None else bool(self._validator.is_valid(structured))
        except ValueError:  # nested too deeply
            return None


def is_acceptable(schema: DeclaredSchema | UnsetType | None, structured: Any, before: Any = UNSET) -> bool:
    """Return whether the client accepts structured content; UNSET is none. For a tool that was never listed, or whose
    schema cannot be read: if it has the shape of the server's result, because a client may look up the schema
    later."""
    # Clients validate against the schema that the tool declared, which may be unknown here: the tool was never listed
    # in this trial. The server's own result then serves as the example.
    if schema is None:
        return True
    if structured is UNSET:
        return before is UNSET and schema is UNSET
    valid = None if schema is UNSET else schema.is_valid(structured)
    if valid is None:
        return before is UNSET or _has_same_shape(before, structured)
    return valid


def _has_same_shape(before: Any, now: Any) -> bool:
    """Return whether the fields are the same, and list items are like the first."""
    if isinstance(before, dict):
        return (
            isinstance(now, dict)
            and list(before) == list(now)
            and all(_has_same_shape(before[key], now[key]) for key in now)
        )
    if isinstance(before, list):
        return isinstance(now, list) and all(_has_same_shape(before[0], item) for item in now if before)
    if isinstance(before, bool) or isinstance(now, bool):
        return type(before) is type(now)
    numbers = isinstance(before, int | float) and isinstance(now, int | float)
    return numbers or type(before) is type(now)
