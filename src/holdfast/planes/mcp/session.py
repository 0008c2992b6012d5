"""One MCP session through the faults of a trial: takes a request and returns what the client must receive.

It is independent of pipes and HTTP: `ask` calls the server, and the transport acts on the Outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.planes.describe import is_same_value, render_value
from holdfast.planes.mcp import results, rpc
from holdfast.planes.mcp.rpc import RpcAnswer, RpcRequest
from holdfast.planes.mcp.trial_state import REFUSED, DeclaredSchema, McpCallTrace, McpTrialState, is_acceptable
from holdfast.planes.recorded_tools import ReplayedReply
from holdfast.protocols.fault import Call, Dropped, Failed, ReceivedReply, Reply, TimedOut
from holdfast.protocols.trial import TrialContext

AskServer: TypeAlias = Callable[[RpcRequest], Awaitable[RpcAnswer]]


class ClientOutcome(Struct, frozen=True):
    """The outcome that the client receives."""

    kind: Literal["message", "garbage", "silence", "expired", "lost", "crash"] = "message"
    """`garbage` is not JSON-RPC; `expired` ends the session, `lost` the connection, `crash` the server."""
    line: bytes = b""
    first: bytes = b""
    """A message to send before it."""
    changed: bool = True
    """Whether it is not the server's own answer."""
    calls: tuple[Call, ...] = ()
    """The calls whose faults produced it."""


class NotAToolResult(Failed):
    """The server's answer is not a tool result: an error, or a question to the client. Faults see a failed call."""


class _McpCall(Struct, eq=False):
    """A call of the client, which goes to the server if a fault lets it through."""

    call: Call
    request: RpcRequest
    _ask: AskServer
    _value_of: Callable[[results.Result], tuple[Any, results.Put]]
    _schema: DeclaredSchema | UnsetType | None = None
    """The result schema that the tool declares; UNSET if it was never listed."""
    _shape: results.ResultShape = results.PLAIN
    """The format of the tool's results."""
    answer: RpcAnswer | None = None
    value: Any = UNSET
    put: results.Put | None = None
    _structured: Any = UNSET
    _text_before: str | None = None

    async def forward(self, call: Call) -> Reply:
        """Return the server's answer, which a fault may change, even in place."""
        reply = await self.pass_on(call)
        self._text_before = render_value(self.value)
        return reply

    async def pass_on(self, call: Call) -> Reply:
        """Return the server's answer, which no fault receives."""
        request = self.request
        self.answer = answer = await self._ask(
            request.replace_arguments(call.arguments) if request.method == rpc.CALL else request
        )
        result = rpc.read_object(answer.message.result)
        if answer.message.error is not UNSET or result is None:
            raise NotAToolResult(_read_error_text(answer))
        if result.get("isError") is True or result.get("resultType", "complete") != "complete":
            raise NotAToolResult(results.format_result(result))
        self.value, self.put = self._value_of(result)
        self._structured = result.get("structuredContent", UNSET)
        return Reply(self.value)

    def fits(self, value: Any) -> bool:
        """Return whether the client accepts the server's answer with this value."""
        if self.put is None or self._structured is UNSET:
            return True
        return self.is_accepted(self.put(value))

    def is_accepted(self, result: results.Result) -> bool:
        """Return whether the client accepts a result."""
        return is_acceptable(self._schema, result.get("structuredContent", UNSET), self._structured)

    def is_unchanged(self, reply: Reply) -> bool:
        """Return whether the client receives the server's own answer."""
        if self.answer is None or not is_same_value(reply.value, self.value):
            return False
        return self._text_before is None or render_value(reply.value) == self._text_before

    def encode(self, reply: Reply) -> bytes:
        """Return the message for a reply: the server's own if it is unchanged."""
        if self.is_unchanged(reply):
            assert self.answer is not None
            return self.answer.raw
        return rpc.write_result(self.request.id, self.build_result(reply))

    def build_result(self, reply: Reply) -> results.Result:
        """Return the server's result with another value, or a result for a call that never went to the server."""
        if self.put is not None:
            return self.put(reply.value)
        build = results.build_replayed if isinstance(reply, ReplayedReply) else results.build_result
        return _mark_complete(build(reply.value, self._shape), self.request)

    def render(self, reply: Reply) -> ReceivedReply:
        """Return a reply as the client receives it."""
        line = self.encode(reply)
        return ReceivedReply(line, line.decode("utf-8", "replace"))


class McpSession(Struct, eq=False):
    """Applies the faults of a trial to the requests to one server."""

    _server: str
    _context: TrialContext
    _state: McpTrialState
    _has_left: Callable[[], bool] = bool
    """Whether the client has disconnected and will receive no answer."""

    def can_answer(self, request: RpcRequest) -> bool:
        """Return whether a request is handled by `answer`; all others pass unchanged."""
        if request.method == rpc.CALL:
            return isinstance(request.params.get("name"), str)
        if request.method in (rpc.READ, rpc.PROMPT):
            return self._context.injector.can_affect("mcp_read", _find_target(request))
        return request.method == rpc.LIST

    def note_batch(self, line: bytes) -> None:
        """Note a batch, which passes although it may contain calls: MCP has removed batches."""
        if line.lstrip().startswith(b"["):
            self._context.sink.note(
                f"MCP server {self._server}: a batch of messages passed unchanged; faults cannot act on batches"
            )

    def _can_deliver(self, outcome: ClientOutcome) -> bool:
        """Return whether the client is there to receive the faults' effect; if not, the faults were not met."""
        if not outcome.changed or not self._has_left():
            return True
        self.mark_undelivered(outcome)
        return False

    def mark_undelivered(self, outcome: ClientOutcome) -> None:
        """Record that the client disconnected without receiving the outcome, so its faults were not met."""
        for call in outcome.calls:
            self._context.injector.mark_undelivered(call.plane, call.target, call.n)

    async def answer(self, request: RpcRequest, ask: AskServer) -> ClientOutcome:
        """Answer a request. Raises the exception of `ask` if the server cannot be reached."""
        try:
            if request.method == rpc.CALL:
                return await self._answer_call(request, ask)
            listing = request.method == rpc.LIST
            outcome = await (
                self._answer_list(request, await ask(request)) if listing else self._answer_read(request, ask)
            )
            self._can_deliver(outcome)
            return outcome
        except HarnessError as broken:
            self._context.sink.add_error(str(broken), broken.code)
            return ClientOutcome(line=rpc.write_error(request.id, rpc.INTERNAL_ERROR, "Internal error"))

    async def _answer_call(self, request: RpcRequest, ask: AskServer) -> ClientOutcome:
        name = request.params["name"]
        arguments = request.params.get("arguments")
        call = Call(
            "mcp", name, arguments if isinstance(arguments, dict) else {}, self._context.injector.count("mcp", name)
        )
        self._state.add_tool(name)
        call_trace = McpCallTrace(self._context, self._server, call)
        if self._state.open and self._context.injector.can_affect("mcp", name):
            self._context.injector.mark_concurrent()
        self._state.open.add(call_trace)
        schema, shape = self._state.schemas.get(name, UNSET), self._state.tools.get(name, results.PLAIN)
        try:
            outcome = await self._apply_faults(_McpCall(call, request, ask, results.read_tool_value, schema, shape))
            if self._can_deliver(outcome):
                _report_call(call_trace, outcome)
                if self._context.sink.watcher is not None:  # the agent may be killed before it gets the reply
                    await self._context.sink.watcher.finish_due()
            return outcome
        finally:  # cancelled, or the server or the client has disconnected
            call_trace.report_unfinished()
            self._state.open.discard(call_trace)

    async def _apply_faults(self, asking: _McpCall) -> ClientOutcome:
        """Return the answer after the faults."""
        call = asking.call

        async def wait(ms: float) -> None:
            if self._has_left():
                self._context.injector.mark_undelivered(call.plane, call.target, call.n, waits=True)
            await asyncio.sleep(ms / 1000)

        try:
            reply = await self._context.injector.inject(
                call,
                asking.forward,
                wait,
                untouched=asking.pass_on,
                fits=asking.fits,
                receives=asking.render,
                names=(f"{self._server}/{call.target}", call.target),
            )
        except NotAToolResult:
            assert asking.answer is not None
            return ClientOutcome(line=asking.answer.raw, changed=False, calls=(call,))
        except Failed as failed:
            return replace(_build_failure(asking.request, failed, asking.answer), calls=(call,))
        # A client that validates results against the declared schema would reject this one: the agent gets an error
        # instead of the fault's value, so the fault was not met as intended.
        if asking.put is None and not asking.is_accepted(asking.build_result(reply)):
            self._context.injector.mark_undelivered(call.plane, call.target, call.n, REFUSED)
            if isinstance(reply, ReplayedReply):
                self._context.sink.note(f"the recorded response of {self._server}/{call.target}: {REFUSED}")
        return ClientOutcome(line=asking.encode(reply), changed=not asking.is_unchanged(reply), calls=(call,))

    async def _answer_read(self, request: RpcRequest, ask: AskServer) -> ClientOutcome:
        """Answer a request for a resource or a prompt, whose text may be attacked."""
        target = _find_target(request)
        value_of = results.read_resource_value if request.method == rpc.READ else results.read_prompt_value
        call = Call("mcp_read", target, {}, self._state.count_request("mcp_read", target))
        return await self._apply_faults(_McpCall(call, request, ask, value_of))

    async def _answer_list(self, request: RpcRequest, answer: RpcAnswer) -> ClientOutcome:
        """Answer with the server's tools, each as the faults leave it."""
        # A listing is many calls, one for each tool: faults match tools by name, and one tool may vanish while the
        # others stay as they are.
        result = rpc.read_object(answer.message.result) or {}
        tools = result.get("tools")
        if answer.message.error is not UNSET or not isinstance(tools, list):
            return ClientOutcome(line=answer.raw, changed=False)
        calls: list[Call] = []
        listed = [listed_tool for tool in tools for listed_tool in await self._list_tool(tool, calls)]
        if render_value(listed) == render_value(tools):
            return ClientOutcome(line=answer.raw, changed=False)
        return ClientOutcome(line=rpc.write_result(request.id, {**result, "tools": listed}), calls=tuple(calls))

    async def _list_tool(self, tool: Any, calls: list[Call]) -> list[Any]:
        """Return the tool as listed, or None; add to `calls` if faults could act on it."""
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str):
            return [tool]
        self._state.add_listed_tool(name, tool)
        if not self._context.injector.can_affect("mcp_list", name):
            return [tool]

        async def forward(call: Call) -> Reply:
            return Reply(deepcopy(tool))  # a fault may change it in place

        call = Call("mcp_list", name, {}, self._state.count_request("mcp_list", name))
        calls.append(call)
        try:
            return [(await self._context.injector.inject(call, forward, _sleep)).value]
        except Failed:
            return []


def build_expired(request: RpcRequest) -> ClientOutcome:
    """Return the answer to every request in a session that a fault has ended."""
    return ClientOutcome("expired", rpc.write_error(request.id, rpc.SESSION_LOST, "Session not found"))


def _build_failure(request: RpcRequest, failed: Failed, answer: RpcAnswer | None) -> ClientOutcome:
    """Return a fault's failure, as an MCP server would report it."""
    words = str(failed)
    match failed.kind:
        case "session_lost":
            return ClientOutcome("expired", rpc.write_error(request.id, rpc.SESSION_LOST, words))
        case "hang":
            return ClientOutcome("silence")
        case "crash":
            return ClientOutcome("crash")
        case "malformed_rpc":
            raw = (
                rpc.write_result(request.id, {"content": []}) if answer is None else answer.raw
            )  # None: it was recorded
            return ClientOutcome("garbage", raw[: len(raw) * 2 // 3])
        case "rpc_error":
            return ClientOutcome(line=rpc.write_error(request.id, rpc.INTERNAL_ERROR, words, failed.body))
        case "tool_gone" | "schema_changed":
            first = b"" if request.is_stateless else rpc.TOOLS_CHANGED
            return ClientOutcome(line=rpc.write_error(request.id, rpc.INVALID_PARAMS, words), first=first)
    if isinstance(failed, TimedOut):
        return ClientOutcome(line=rpc.write_error(request.id, rpc.TIMED_OUT, "Request timed out"))
    if isinstance(failed, Dropped):
        return ClientOutcome("lost")
    wait = "" if failed.retry_after_s is None else f" (retry after {failed.retry_after_s:g} s)"
    result = {"content": results.write_content(words + wait), "isError": True}
    return ClientOutcome(line=rpc.write_result(request.id, _mark_complete(result, request)))


def _mark_complete(result: results.Result, request: RpcRequest) -> results.Result:
    """Mark a result as complete, which the protocol version without sessions requires."""
    return {**result, "resultType": "complete"} if request.is_stateless else result


def _report_call(call_trace: McpCallTrace, outcome: ClientOutcome) -> None:
    """Report the call as the client saw it."""
    if outcome.kind not in ("message", "expired"):
        call_trace.report_end(outcome.line.decode("utf-8", "replace"), error_type=outcome.kind)
        return
    message = rpc.read_message(outcome.line) or rpc.RpcMessage()
    if message.error is not UNSET:
        error = rpc.read_object(message.error) or {}
        code = error.get("code")
        timed_out = outcome.kind == "message" and code == rpc.TIMED_OUT
        error_type = "timeout" if timed_out else "session_lost" if outcome.kind == "expired" else "rpc_error"
        call_trace.report_end(
            str(error.get("message", "")), status=code if isinstance(code, int) else None, error_type=error_type
        )
        return
    result = rpc.read_object(message.result) or {}
    error_type = "tool_error" if result.get("isError") is True else ""
    call_trace.report_end(
        results.format_result(result), error_type=error_type, whole=results.find_nontext_result(result)
    )


def _read_error_text(answer: RpcAnswer) -> str:
    error = rpc.read_object(answer.message.error) or {}
    return str(error.get("message", "the server's answer cannot be read"))


def _find_target(request: RpcRequest) -> str:
    return str(request.params.get("uri" if request.method == rpc.READ else "name", ""))


async def _sleep(ms: float) -> None:
    await asyncio.sleep(ms / 1000)
