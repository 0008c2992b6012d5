"""The MCP plane: every server of an agent, over stdio or HTTP, through the faults of its trial.

A stdio server is behind a relay, which holds the client's and the server's pipes; a Pipe is the harness's end of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Mapping
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from holdfast.http1.client import Upstreams
from holdfast.http1.heads import JSON_TYPE
from holdfast.http1.server import Exchange, Tunnel
from holdfast.model.shorten import shorten
from holdfast.planes.describe import format_exception
from holdfast.planes.mcp import rpc
from holdfast.planes.mcp.config import Target
from holdfast.planes.mcp.relay import LINE_LIMIT, UNUSABLE
from holdfast.planes.mcp.rpc import Id, RpcAnswer, RpcRequest
from holdfast.planes.mcp.session import ClientOutcome, McpSession, build_expired
from holdfast.planes.mcp.streamable import McpHttpRequest
from holdfast.planes.mcp.trial_state import McpTrialState
from holdfast.protocols.trial import TrialContext

_LATE_ANSWERS_S = 0.5
"""Time for answers in progress after the server has ended."""
_LATEST_LIMIT = 100
"""Replies that may be in transit when a client leaves: more than any client waits for."""
_DIGITS = 20
"""Maximum length of a number from a relay, which is a program of the agent and not trusted."""
_KILL, _TERMINATE = b"9", b"15"
_STOPPED_FROM_OUTSIDE = (-1, -2, -9, -15)
"""Exit codes of a server that was stopped from outside, as happens when the agent's process tree is stopped."""


class ServerGone(Exception):
    """The server ended before it answered."""


class Pipe:
    """One relay, from its greeting to its end."""

    def __init__(self, connection: Tunnel, server: str, context: TrialContext, state: McpTrialState) -> None:
        self._connection = connection
        self._server = server
        self._context = context
        self._session = McpSession(server, context, state, lambda: self._has_client_closed)
        self._has_client_closed = False
        """Whether the client has closed its input."""
        self._lines = 0
        """Number of lines sent to it."""
        self._latest: deque[tuple[int, ClientOutcome]] = deque(maxlen=_LATEST_LIMIT)
        """The faults' effects in the latest lines, each with its line number."""
        self._expired = False
        self._answered = False
        """Whether the server has sent anything at all."""
        self._ending = False
        """Whether the client or a fault asked the server to end."""
        self._waiting: dict[Id, deque[asyncio.Future[RpcAnswer]]] = {}
        self._tasks: dict[asyncio.Task[None], Id] = {}

    async def serve(self) -> None:
        """Pass lines on until one side ends."""
        try:
            async for mark, line in read_frames(self._connection):
                if mark == b"X":
                    await self._handle_server_end(line)
                    return
                await self._handle_frame(mark, line)
        except ConnectionError:  # the relay is gone, and the client with it
            return
        finally:
            for task in list(self._tasks):
                task.cancel()
            self._connection.close()

    async def _handle_frame(self, mark: bytes, line: bytes) -> None:
        if mark == b"C":
            await self._handle_client_line(line)
        elif mark == b"S":
            await self._handle_server_line(line)
        elif mark == b"G":
            self._handle_client_left(line)
        elif mark == b"E":
            self._ending = True
            await self._connection.write(b"E\n")

    async def _handle_client_line(self, line: bytes) -> None:
        message = rpc.read_message(line)
        request = rpc.read_request(message, line) if message is not None else None
        if message is None:
            self._session.note_batch(line)
        if message is not None and (cancelled := rpc.find_cancelled(message)) is not None:
            for task in [task for task, id in self._tasks.items() if id == cancelled]:
                task.cancel()  # the client no longer waits for its answer
        if request is None:
            await self._send(b"S", line)
            return
        if request.method == rpc.INITIALIZE:
            self._expired = False
        if self._expired:
            await self._send(b"C", build_expired(request).line)
        elif self._session.can_answer(request):
            await self._start_answer(request)
        else:
            await self._send(b"S", line)

    async def _start_answer(self, request: RpcRequest) -> None:
        task = asyncio.create_task(self._answer(request))
        self._tasks[task] = request.id
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        await asyncio.sleep(0)  # it must reach the server before the client's next message

    async def _handle_server_line(self, line: bytes) -> None:
        if not self._answered:
            self._answered = True
            self._context.sink.mark_answered(f"mcp:{self._server}")
        message = rpc.read_message(line)
        if message is not None and message.is_answer and isinstance(message.id, int | float | str):
            # Clients may reuse an id, and cancelled calls leave answers that still come. Answers are given to the
            # callers in the order of their requests; one that nobody waits for goes to the client, as without Holdfast.
            waiting = self._waiting.get(message.id, deque())
            while waiting:
                future = waiting.popleft()
                if not future.done():  # otherwise its call was cancelled a moment ago
                    future.set_result(RpcAnswer(message, line))
                    return
        await self._send(b"C", line)

    def _handle_client_left(self, report: bytes) -> None:
        """Handle a client that no longer reads: its pipe accepted the reported number of lines and no more."""
        self._has_client_closed = True
        # The relay is started by the agent and could say anything; a number that is not plausible counts as nothing
        # accepted.
        accepted = int(report) if report.isdigit() and len(report) < _DIGITS else 0
        for n, outcome in self._latest:
            if n > accepted:
                self._session.mark_undelivered(outcome)

    async def _answer(self, request: RpcRequest) -> None:
        try:
            outcome = await self._session.answer(request, self._ask_server)
            try:
                await self._deliver(request, outcome)
            except ConnectionError:
                self._session.mark_undelivered(outcome)
        except (ServerGone, ConnectionError):
            return
        except Exception as bug:
            self._context.sink.add_error(f"the MCP plane failed: {format_exception(bug)}", "bug")
            await self._send(b"C", rpc.write_error(request.id, rpc.INTERNAL_ERROR, "Internal error"))

    async def _ask_server(self, request: RpcRequest) -> RpcAnswer:
        future: asyncio.Future[RpcAnswer] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(request.id, deque())
        waiting.append(future)
        try:
            await self._send(b"S", request.raw)
            return await future
        finally:
            with contextlib.suppress(ValueError):
                waiting.remove(future)
            if not waiting:
                self._waiting.pop(request.id, None)

    async def _deliver(self, request: RpcRequest, outcome: ClientOutcome) -> None:
        match outcome.kind:
            case "message" | "garbage" | "expired":
                if outcome.kind == "expired":
                    self._expired = not request.is_stateless
                lines = (outcome.first, outcome.line) if outcome.first else (outcome.line,)
                if outcome.changed:
                    self._latest.append((self._lines + len(lines), ClientOutcome(calls=outcome.calls)))
                await self._send(b"C", *lines)
            case "lost":
                await self._send(b"K", _TERMINATE)
            case "crash":
                await self._send(b"K", _KILL)
            case "silence":
                pass

    async def _send(self, mark: bytes, *lines: bytes) -> None:
        self._ending = self._ending or mark == b"K"
        self._lines += len(lines) if mark == b"C" else 0
        await self._connection.write(b"".join([mark + line + b"\n" for line in lines]))

    async def _handle_server_end(self, report: bytes) -> None:
        """Send the remaining answers. If the server failed before its first output, that is not the agent's fault."""
        for waiting in list(self._waiting.values()):
            for future in [future for future in waiting if not future.done()]:
                future.set_exception(ServerGone())
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=_LATE_ANSWERS_S)
        if not self._answered and not self._ending and (why := _describe_failure(self._server, report)):
            self._context.sink.add_error(
                f"{why}: fix its command in the agent's MCP configuration", "mcp-config-invalid"
            )


def _describe_failure(server: str, report: bytes) -> str:
    """Return why a server ended unexpectedly; empty if it was stopped from outside. `report` is the relay's report."""
    code, _, what = report.decode("utf-8", "replace").partition(" ")
    if not code.removeprefix("-").isdigit() or int(code) in _STOPPED_FROM_OUTSIDE:
        return ""
    if int(code) == UNUSABLE and " cannot be started: " in what:
        return f"MCP server {server}: {shorten(what)}"
    end = f"ended with exit code {code}" if int(code) >= 0 else f"was killed by signal {code[1:]}"
    return f"MCP server {server} ({shorten(what)}) {end} before it sent anything"


async def read_frames(connection: Tunnel) -> AsyncIterator[tuple[bytes, bytes]]:
    """Yield every complete line as (mark, rest). Raises ConnectionError for an endless line."""
    partial = bytearray()
    while data := await connection.read():
        if b"\n" not in data:
            partial += data
            if len(partial) > 2 * LINE_LIMIT:
                raise ConnectionError("a line is too long")
            continue
        *lines, rest = (bytes(partial) + data).split(b"\n")
        partial[:] = rest
        for line in lines:
            yield line[:1], line[1:]


class McpPlane:
    """Handles requests to the servers. `servers` are those over HTTP, by name; those over stdio bring their own
    pipes."""

    def __init__(self, servers: Mapping[str, Target], upstreams: Upstreams) -> None:
        self._servers = servers
        self._upstreams = upstreams
        self._states: WeakKeyDictionary[TrialContext, McpTrialState] = WeakKeyDictionary()

    async def serve(self, exchange: Exchange, server: str, context: TrialContext) -> None:
        """Serve one request from an address: a relay's CONNECT, or a client's HTTP. `server` is the rest of the
        path."""
        if exchange.head.method == "CONNECT":
            await Pipe(await exchange.take_over(), server, context, self._get_state(context)).serve()
        else:
            await self.serve_http(exchange, unquote(server.partition("?")[0].rstrip("/")), context)

    async def serve_http(self, exchange: Exchange, server: str, context: TrialContext) -> None:
        """Serve one request of a client to an HTTP server."""
        target = self._servers.get(server)
        if target is None:
            line = rpc.write_error(None, rpc.INTERNAL_ERROR, f"there is no MCP server {server!r} here")
            await exchange.respond(404, JSON_TYPE, line)
        elif exchange.head.method not in ("GET", "POST", "DELETE"):
            await exchange.respond(405, (("allow", "GET, POST, DELETE"),))
        else:
            await McpHttpRequest(exchange, server, target, self._upstreams, context, self._get_state(context)).serve()

    def list_tool_names(self, context: TrialContext) -> frozenset[str]:
        """Return the tools that were listed or called over MCP in this trial."""
        return frozenset(self._get_state(context).tools)

    def end_trial(self, context: TrialContext) -> None:
        """End a trial: its unanswered calls are reported to its trace as unfinished."""
        if (state := self._states.pop(context, None)) is not None:
            state.end_trial()

    def _get_state(self, context: TrialContext) -> McpTrialState:
        return self._states.setdefault(context, McpTrialState())
