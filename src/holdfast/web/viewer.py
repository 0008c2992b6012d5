"""The viewer's server: every request passes the gate, then gets a file of the page or data about the runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from weakref import WeakKeyDictionary

from holdfast.http1.server import BadRequest, ClientConnection, Exchange, Listener, serve
from holdfast.web.api import Api
from holdfast.web.event_hub import EventHub, Listening
from holdfast.web.opened_runs import Project
from holdfast.web.web_reply import NOTHING, SMALL, Gate, WebReply, build_refusal, create_token, read_static_file


class DaemonWorkers(Executor):
    """Runs each call in its own thread, a limited number at a time.

    The threads are daemons: those of the standard library's executors would keep the viewer alive until the last file
    is read.
    """

    def __init__(self, most: int) -> None:
        self._slots = threading.Semaphore(most)
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        threading.Thread(target=self._work, args=(future, partial(fn, *args, **named)), daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:
        """Drop waiting calls; running ones end by themselves, and nobody waits for them."""
        self._closed = True

    def _work(self, future: Future[Any], call: Callable[[], Any]) -> None:
        with self._slots:
            if self._closed:
                future.cancel()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as broken:
                    future.set_exception(broken)


IDLE_S = 75.0
"""Seconds before an idle connection is closed; a browser opens a new one when needed."""
MOST = 200
"""Open connections; beyond this number the others are idle, or somebody holds them open on purpose."""
SWEEP_S = 2.0


class IdleConnections:
    """Tracks which connections are busy, and since when the others are idle."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._busy: set[ClientConnection] = set()
        self._since: WeakKeyDictionary[ClientConnection, float] = WeakKeyDictionary()

    def begin(self, connection: ClientConnection) -> None:
        self._busy.add(connection)

    def end(self, connection: ClientConnection) -> None:
        self._busy.discard(connection)
        self._since[connection] = self._clock()

    def close_idle(self, connections: Iterable[ClientConnection]) -> None:
        """Close connections that were idle too long; if there are too many, those that were idle longest."""
        now = self._clock()
        idle = sorted(
            (one for one in connections if one not in self._busy), key=lambda one: self._since.setdefault(one, now)
        )
        # Beyond the limit the connections that were idle longest are closed first.
        spare = len(idle) + len(self._busy) - MOST
        for number, one in enumerate(idle):
            if number < spare or now - self._since[one] > IDLE_S:
                one.abort()

    async def keep_sweeping(self, connections: Callable[[], Iterable[ClientConnection]]) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self.close_idle(list(connections()))


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
WORKERS = 16
"""Requests answered in parallel: each reads files."""
BODY, BODY_S = 100_000, 10.0
"""Bytes of a request's body, and seconds for it to arrive."""
COMMENT_S = 15.0
EVENTS = "api/events"
SLOW_S = 30.0
"""Seconds for a client to read a reply."""


class Viewer:
    """Serves one project on a loopback address until it is closed."""

    def __init__(self, runs: Path, environ: Mapping[str, str]) -> None:
        self._project = Project(runs, environ)
        self._api = Api(self._project)
        self._workers = DaemonWorkers(WORKERS)
        self._hub = EventHub(self._project.opened, self._project.list, self._workers)
        self._gate = Gate(create_token(), 0)
        self._listener: Listener | None = None
        self._idle = IdleConnections()
        self._sweeping: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._gate.port}/{self._gate.token}/"

    @property
    def port(self) -> int:
        return self._gate.port

    async def open(self, port: int = 0) -> None:
        """Listen; raise OSError if the port is taken."""
        self._listener = await serve(self._serve, port=port)
        self._gate = Gate(self._gate.token, self._listener.port)
        listener = self._listener
        self._sweeping = asyncio.create_task(self._idle.keep_sweeping(lambda: listener.connections))

    async def close(self) -> None:
        await self._hub.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._listener is not None:
            await self._listener.close()
        self._workers.shutdown()
        self._project.close()

    async def _serve(self, exchange: Exchange) -> None:
        self._idle.begin(exchange.connection)
        try:
            await self._enter(exchange)
        finally:
            self._idle.end(exchange.connection)

    async def _enter(self, exchange: Exchange) -> None:
        try:
            entered = self._gate.enter(exchange.head)
            if isinstance(entered, str) and entered.partition("?")[0] == EVENTS and exchange.head.method == "GET":
                await self._stream(exchange, entered)
                return
            reply = entered if isinstance(entered, WebReply) else await self._answer(exchange, entered)
            await self._send(exchange, reply)
        except ConnectionResetError:
            exchange.break_connection()

    async def _stream(self, exchange: Exchange, below: str) -> None:
        """Send events until the client leaves or stops reading."""
        run = dict(parse_qsl(below.partition("?")[2])).get("run", "")
        known = not run or await asyncio.get_running_loop().run_in_executor(self._workers, self._api.has_run, run)
        one = self._hub.add_listener(run) if known else None
        if one is None:
            busy = build_refusal(503, "too many pages are open", "close some tabs") if known else NOTHING
            await self._send(exchange, busy)
            return
        try:
            headers = (*HEADERS, ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"))
            await exchange.start(200, headers)
            await self._write(exchange, b": listening\n\n")
            while not one.over.is_set():
                await self._write(exchange, await self._await_event(exchange, one))
            exchange.break_connection()
        finally:
            self._hub.remove_listener(one)

    async def _await_event(self, exchange: Exchange, one: Listening) -> bytes:
        """Return the next event. If there is none for a while, return a comment: sending it detects a client that
        left.
        """
        waiting = asyncio.ensure_future(one.queue.get())
        leaving = asyncio.ensure_future(exchange.connection.wait_closed())
        try:
            await asyncio.wait((waiting, leaving), timeout=COMMENT_S, return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else b": still here\n\n"
        finally:
            waiting.cancel()
            leaving.cancel()

    async def _write(self, exchange: Exchange, data: bytes) -> None:
        try:
            async with asyncio.timeout(SLOW_S):
                await exchange.write(data)
        except TimeoutError:
            raise ConnectionResetError("the client does not read") from None

    async def _answer(self, exchange: Exchange, below: str) -> WebReply:
        path, _, _ = below.partition("?")
        loop = asyncio.get_running_loop()
        try:
            if exchange.head.method == "PUT":
                async with asyncio.timeout(BODY_S):
                    body = await exchange.read_body(BODY)
                if not path.startswith("api/"):
                    return NOTHING
                return await loop.run_in_executor(self._workers, self._api.save_note, path.removeprefix("api/"), body)
            if path.startswith("api/"):
                return await loop.run_in_executor(self._workers, self._api.get, below.removeprefix("api/"))
            return await loop.run_in_executor(self._workers, read_static_file, path) or NOTHING
        except TimeoutError:
            return build_refusal(408, "the request arrived too slowly", "send it again")
        except (BadRequest, ConnectionError):
            raise
        except Exception as bug:  # the page shows it; one bad run must not stop the viewer
            return build_refusal(500, f"{type(bug).__name__}: {bug}", "this is a bug in Holdfast")

    async def _send(self, exchange: Exchange, reply: WebReply) -> None:
        headers = [*HEADERS, ("Content-Type", reply.type)]
        if reply.etag:
            headers += [("ETag", reply.etag), ("Cache-Control", "no-cache")]
        else:
            headers.append(("Cache-Control", "no-store"))
        body, status = reply.body, reply.status
        if reply.etag and exchange.head.get("if-none-match") == reply.etag:
            body, status = b"", 304
        elif len(body) > SMALL and "gzip" in (exchange.head.get("accept-encoding") or ""):
            body = await asyncio.get_running_loop().run_in_executor(self._workers, reply.compress)
            headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
        try:
            async with asyncio.timeout(SLOW_S):
                await exchange.respond(status, headers, body)
        except TimeoutError:
            exchange.break_connection()
