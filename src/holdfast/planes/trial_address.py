"""A TrialAddress: the one address at which an instance of the agent reaches its model, the web and its MCP servers.

The token in the path identifies the agent. A request outside a trial, or on a connection that is older than the trial,
gets 503 and counts for no trial.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from ssl import SSLContext
from typing import Protocol
from urllib.parse import unquote
from weakref import WeakSet

from holdfast.http1.client import UpstreamFailed, Upstreams
from holdfast.http1.heads import JSON_TYPE, drop_hop_by_hop
from holdfast.http1.server import BadRequest, ClientConnection, Exchange, Listener, serve
from holdfast.planes.describe import format_exception
from holdfast.processes.peers import ProcessTree
from holdfast.processes.program import await_all
from holdfast.protocols.trial import TrialContext

MCP_HOST = "holdfast.mcp:"
"""The host that an MCP relay sends its CONNECT for; the name of its server follows."""

PLANES = frozenset(("mcp", "openai", "anthropic", "google", "ollama"))
"""The path segments after the token: MCP servers, and the providers with a supported API."""
NO_TRIAL = b'{"error": {"message": "no trial is running", "type": "holdfast"}}'


EARLY_CALL = "the agent made calls at start-up, before its trial; Holdfast does not serve those"
OLD_CONNECTION = "a call on a connection older than the trial got 503"
FOREIGN_PROCESS = "a process outside this trial called its address and got 403"


class TrialServer(Protocol):
    """Serves the requests of one trial."""

    def serve_model(self, exchange: Exchange, provider: str, path: str) -> Awaitable[None]:
        """Serve a model API call; `path` is the part after the base URL, with its query."""

    def serve_web(self, exchange: Exchange) -> Awaitable[None]:
        """Serve a request to a forward proxy."""

    def serve_host(self, exchange: Exchange, scheme: str, host: str, port: int) -> Awaitable[None]:
        """Serve a request to a host that Holdfast simulates."""

    def serve_mcp(self, exchange: Exchange, server: str) -> Awaitable[None]:
        """Serve a request to an MCP server over HTTP, or the connection of a relay."""

    def report_error(self, why: str) -> None:
        """Report that a plane failed, which is a harness error and never the agent's failure."""

    def note(self, text: str) -> None:
        """Add a note for the reader of the trial's report."""

    def close(self) -> None:
        """End the trial."""


class LoopbackAddress:
    """The address that an agent's traffic is routed to: a loopback listener, and the token at the start of its
    paths."""

    def __init__(self, token: str, variables: Variables) -> None:
        self.token = token
        self.listener: Listener
        self._variables = variables

    @property
    def port(self) -> int:
        return self.listener.port

    @property
    def url(self) -> str:
        """The base URL of its planes."""
        return f"http://127.0.0.1:{self.port}/{self.token}"

    @property
    def proxy_url(self) -> str:
        """The proxy URL, with its password."""
        return f"http://holdfast:{self.token}@127.0.0.1:{self.port}"

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables that route an agent's traffic here."""
        return self._variables(self)


OpenTrial = Callable[[LoopbackAddress, TrialContext], TrialServer]
Variables = Callable[[LoopbackAddress], Mapping[str, str]]
"""The variables to start an agent with, to route its calls to an address."""


class TrialAddress(LoopbackAddress):
    """One loopback listener, bound to one trial at a time."""

    def __init__(self, open_trial: OpenTrial, token: str, variables: Variables) -> None:
        super().__init__(token, variables)
        self._open_trial = open_trial
        self._trial_server: TrialServer | None = None
        self._early = 0
        """Requests that arrived before the first trial and were rejected."""
        self._used = False
        self._checked: WeakSet[ClientConnection] = WeakSet()
        """Connections whose process was already checked."""
        self.process_tree = ProcessTree()
        """The process tree that may connect; anyone with the token, if no first process was set."""
        self._host_listeners: list[Listener] = []
        """Listeners for hosts in the agent's own network."""
        self.passes_on = False
        """Whether the agent has ended. Calls to such a host then come from a check, and pass unchanged."""

    @classmethod
    async def open(
        cls,
        open_trial: OpenTrial,
        variables: Variables,
        *,
        sock: socket.socket | None = None,
        token: str | None = None,
    ) -> TrialAddress:
        """Bind a free port, or take over a bound socket."""
        address = cls(open_trial, token or secrets.token_urlsafe(18), variables)
        address.listener = await serve(address.answer, sock=sock)
        report_errors(address.listener, address._find_trial)
        return address

    @contextmanager
    def serve_trial(self, context: TrialContext) -> Iterator[None]:
        """Bind the address to a trial; when the trial ends, open connections are closed."""
        self.listener.epoch += 1
        self._trial_server = trial_server = self._open_trial(self, context)
        if self._early:
            context.sink.add_error(f"{EARLY_CALL}: {self._early} got 503", "agent-early")
        self._early, self._used = 0, True
        try:
            yield
        finally:
            self._trial_server = None
            self.listener.epoch += 1
            self.listener.drop()
            trial_server.close()

    async def serve_as_host(
        self,
        sock: socket.socket,
        host: str,
        port: int,
        tls: SSLContext | None = None,
        also: Collection[str] = (),
        upstream: tuple[str, int] | None = None,
    ) -> None:
        """Serve a socket in the agent's own network as that host, until the address closes.

        `also` lists other hosts that resolve to this socket: a request that names one of them goes to that host.
        `upstream` is the host's real address.
        """
        scheme = "http" if tls is None else "https"

        async def answer_as_host(exchange: Exchange) -> None:
            if self._trial_server is None and self.passes_on and upstream is not None:
                await _forward_to_host(exchange, upstream)
            elif self._trial_server is None:
                await reject_no_trial(exchange)
            else:
                requested = (exchange.head.get("host") or "").rpartition("@")[2].partition(":")[0].lower()
                await self._trial_server.serve_host(exchange, scheme, requested if requested in also else host, port)

        listener = await serve(answer_as_host, sock=sock, tls=tls)
        report_errors(listener, lambda _: self._trial_server)
        self._host_listeners.append(listener)

    async def close(self) -> None:
        await await_all(listener.close() for listener in (self.listener, *self._host_listeners))

    async def answer(self, exchange: Exchange) -> None:
        """Serve one request: checks the token, the trial and the plane."""
        is_checked = not self.process_tree.first or exchange.connection in self._checked
        if not is_checked and await self._reject_foreign_process(exchange):
            return
        trial_server = self._find_trial(exchange.connection)
        # Holdfast closes the connection after a rejected request: that does not count against the agent.
        if trial_server is None:
            if self._trial_server is not None:
                self._trial_server.report_error(OLD_CONNECTION)
            elif not self._used:
                self._early += 1
        await serve_request(exchange, self.token, trial_server)

    async def _reject_foreign_process(self, exchange: Exchange) -> bool:
        """Return whether the connecting process is rejected because it read the token in another's environment;
        checked once per connection."""
        if not await self.process_tree.is_foreign(exchange.connection.peer, self.port):
            self._checked.add(exchange.connection)
            return False
        if self._trial_server is not None:
            self._trial_server.note(FOREIGN_PROCESS)
        exchange.keep_alive = False
        await exchange.respond(403, body=b"this address belongs to another process\n")
        return True

    def _find_trial(self, connection: ClientConnection) -> TrialServer | None:
        # A connection that an agent keeps open from one trial to the next would let its late calls count for the wrong
        # trial. Each trial begins a new epoch, and only connections of this epoch are served.
        return self._trial_server if connection.born == self.listener.epoch else None


def report_errors(listener: Listener, find_server: Callable[[ClientConnection], TrialServer | None]) -> None:
    """Report an error on a connection to the trial that it belongs to."""

    def report_failure(connection: ClientConnection, error: Exception) -> None:
        if (server := find_server(connection)) is not None:
            server.report_error(f"a plane failed: {format_exception(error)}")

    def report_bad_request(connection: ClientConnection, refused: BadRequest) -> None:
        if (server := find_server(connection)) is not None:  # a request that cannot be parsed is the client's fault
            server.note(f"a request could not be parsed and was answered {refused.status}: {refused}")

    listener.on_error, listener.on_refused = report_failure, report_bad_request


def serve_request(exchange: Exchange, token: str, trial_server: TrialServer | None) -> Awaitable[None]:
    """Serve a request with a valid token, if a trial is in progress."""
    head = exchange.head
    if head.method != "CONNECT" and "://" not in head.target[:12]:
        return route_request(exchange, head.target, token, trial_server)
    if not _has_token(head.get("proxy-authorization"), token):
        challenge = (("proxy-authenticate", "Basic"),)
        return exchange.respond(407, challenge, b"the proxy's password is missing or wrong\n")
    if trial_server is None:
        return reject_no_trial(exchange)
    if head.method == "CONNECT" and head.target.startswith(MCP_HOST):
        return trial_server.serve_mcp(exchange, unquote(head.target.removeprefix(MCP_HOST)))
    return trial_server.serve_web(exchange)


def route_request(exchange: Exchange, path: str, token: str, trial_server: TrialServer | None) -> Awaitable[None]:
    """Serve a request to one of Holdfast's own paths, `/token/plane/...`."""
    first, _, rest = path[1:].partition("/")
    plane, slash, rest = rest.partition("/")
    if not slash or not _is_token(first, token) or plane not in PLANES:
        return exchange.respond(404, body=b"not found\n")
    if trial_server is None:
        return reject_no_trial(exchange)
    if plane == "mcp":
        return trial_server.serve_mcp(exchange, rest)
    return trial_server.serve_model(exchange, plane, f"/{rest}")


async def reject_no_trial(exchange: Exchange) -> None:
    """Answer a request outside a trial."""
    # A call outside a trial, such as a late one from the previous trial, must not count for the next trial. Closing
    # makes a client that retries, or calls in the next trial, open a new connection.
    exchange.keep_alive = False
    await exchange.respond(503, JSON_TYPE, NO_TRIAL)


async def _forward_to_host(exchange: Exchange, upstream: tuple[str, int]) -> None:
    """Forward the request to the real host, on a connection of its own."""
    head, upstreams = exchange.head, Upstreams()
    exchange.keep_alive = False
    try:
        url = f"http://{upstream[0]}:{upstream[1]}{head.target}"
        reply = await upstreams.send(head.method, url, [*drop_hop_by_hop(head.headers)], await exchange.read_body())
        body = await reply.read()
        headers = [field for field in drop_hop_by_hop(reply.headers) if field[0].lower() != b"content-length"]
        await exchange.respond(reply.status, headers, body)
    except UpstreamFailed as failed:
        await exchange.respond(502, body=f"{failed}\n".encode())
    finally:
        await upstreams.close()


def _has_token(authorization: str | None, token: str) -> bool:
    scheme, _, coded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return False
    try:
        _, _, password = base64.b64decode(coded).decode("utf-8").partition(":")
    except ValueError:
        return False
    return _is_token(password, token)


def _is_token(text: str, token: str) -> bool:
    return text.isascii() and hmac.compare_digest(text, token)
