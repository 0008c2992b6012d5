"""A call of an MCP tool on its way into the trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.model.codec import canonical, digest, encodable
from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT, TraceEvent
from holdfast.planes.describe import arguments_digest, cut_off
from holdfast.planes.recorded_value import write_reply
from holdfast.protocols.fault import Call
from holdfast.protocols.trial import TrialContext


class McpCallTrace:
    """One call from its arrival to its end; it is told once."""

    def __init__(self, context: TrialContext, server: str, call: Call) -> None:
        self._context = context
        self._server = server
        self._call = call
        self._began = context.now()
        self._told = False

    def ended(self, output: str = "", *, status: int | None = None, trouble: str = "", whole: Any = None) -> None:
        """It came to an end that the agent could see; `whole`: the result, where its text is not all of it."""
        self._tell(output, status, trouble, finished=True, whole=whole)

    def left(self) -> None:
        """Nobody waits for it any more."""
        self._tell("", None, "cancelled", finished=False)

    def _tell(self, output: str, status: int | None, trouble: str, *, finished: bool, whole: Any = None) -> None:
        if self._told:
            return
        self._told = True
        call, context = self._call, self._context
        given, shown = _json(call.arguments), _kept(output)
        reply = "" if whole is None and shown == output else write_reply(output if whole is None else whole)
        event = TraceEvent(
            ts=self._began,
            event_type="mcp_call",
            tool=call.target,
            plane=call.plane,
            n=call.n,
            phase="done" if finished else "unfinished",
            duration_ms=(context.now() - self._began) * 1000,
            status=status,
            error_type=trouble,
            input=_kept(given),
            output=shown,
            write=True,
            digest=digest(
                f"{self._server}\n{call.target}\n{arguments_digest(call.arguments)}".encode(errors="replace")
            ),
            fault=context.met_by(call.plane, call.target, call.n),
            canaries=cut_off(given),
            reply=reply,
        )
        context.saw(event)


def _json(arguments: Mapping[str, Any]) -> str:
    return canonical(dict(arguments)).decode()


def _kept(text: str) -> str:
    return encodable(shorten(text, TEXT_KEPT))
