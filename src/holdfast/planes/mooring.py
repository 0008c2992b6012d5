"""A Mooring: the one address through which an instance of the agent reaches its model, the web and its MCP servers.

Who knows the token is the agent it was given to. A request outside of a trial, or on a connection that is older than
the trial, gets 503 and counts for none.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import unquote

from holdfast.planes.describe import said
from holdfast.planes.http1.server import Exchange, Listener, serve
from holdfast.protocols import Trip

MCP_HOST = "holdfast.mcp:"
"""What an MCP relay asks to be connected to; the name of its server follows."""


PLANES = frozenset(("mcp", "openai", "anthropic", "google", "ollama"))
"""What follows the token in a path: MCP servers, and the providers whose API is spoken."""
NO_TRIAL = b'{"error": {"message": "no trial is under way", "type": "holdfast"}}'


EARLY = "the agent made calls when it started, before its trial, which Holdfast does not serve"
OLD = "a call came on a connection that is older than the trial, and got 503"


class Aboard(Protocol):
    """Serves the requests of one trial."""

    async def model(self, exchange: Exchange, provider: str, path: str) -> None:
        """A call of a model's API; `path` is what follows the base URL, with its query."""
        ...

    async def web(self, exchange: Exchange) -> None:
        """A request to a forward proxy."""
        ...

    async def mcp(self, exchange: Exchange, server: str) -> None:
        """A request to an MCP server over HTTP, or the line of a relay."""
        ...

    def broke(self, why: str) -> None:
        """A plane broke: our failure, never the agent's."""
        ...

    def close(self) -> None:
        """The trial is over."""
        ...


class Address(Protocol):
    """Where an agent is led to: a mooring or a lobby."""

    token: str

    @property
    def port(self) -> int: ...

    @property
    def url(self) -> str:
        """What its planes are reached under."""
        ...

    @property
    def proxy_url(self) -> str:
        """The proxy, with its password."""
        ...


Board = Callable[[Address, Trip], Aboard]
Variables = Callable[[Address], Mapping[str, str]]
"""What an agent is started with so that its calls come to an address."""


class Mooring:
    """One listener on loopback, tied to one trial at a time."""

    def __init__(self, board: Board, token: str, variables: Variables) -> None:
        self._board = board
        self._aboard: Aboard | None = None
        self._early = 0
        """Requests that came before the first trial, and were refused."""
        self._used = False
        self._variables = variables
        self.token = token
        self.listener: Listener

    @classmethod
    async def open(
        cls,
        board: Board,
        variables: Variables,
        *,
        sock: socket.socket | None = None,
        token: str | None = None,
    ) -> Mooring:
        """Binds a free port, or takes over a socket that is bound already."""
        mooring = cls(board, token or secrets.token_urlsafe(18), variables)
        mooring.listener = await serve(mooring.answer, sock=sock)
        mooring.listener.on_error = mooring._wrong
        return mooring

    @property
    def port(self) -> int:
        return self.listener.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}"

    @property
    def proxy_url(self) -> str:
        return f"http://holdfast:{self.token}@127.0.0.1:{self.port}"

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables that lead an agent here."""
        return self._variables(self)

    @contextmanager
    def carry(self, trip: Trip) -> Iterator[None]:
        """Ties the mooring to a trial; when it is over, whatever is still under way is cut off."""
        self.listener.epoch += 1
        self._aboard = aboard = self._board(self, trip)
        if self._early:
            trip.broke(f"{EARLY}: {self._early} got 503")
        self._early, self._used = 0, True
        try:
            yield
        finally:
            self._aboard = None
            self.listener.epoch += 1
            self.listener.drop()
            aboard.close()

    async def close(self) -> None:
        await self.listener.close()

    async def answer(self, exchange: Exchange) -> None:
        """One request: is it ours, is there a trial, and which plane is it for?"""
        aboard = self._current(exchange)
        if aboard is None:
            self._refused(exchange)
        await berthed(exchange, self.token, aboard)

    def _refused(self, exchange: Exchange) -> None:
        """A request that we turn away is our doing: what the agent makes of it is not held against it."""
        if self._aboard is not None:
            self._aboard.broke(OLD)
        elif not self._used:
            self._early += 1

    def _wrong(self, exchange: Exchange, error: Exception) -> None:
        if (aboard := self._current(exchange)) is not None:
            aboard.broke(f"a plane broke: {said(error)}")

    def _current(self, exchange: Exchange) -> Aboard | None:
        return self._aboard if exchange.connection.born == self.listener.epoch else None


async def berthed(exchange: Exchange, token: str, aboard: Aboard | None) -> None:
    """Serves a request that knows the token, if a trial is under way."""
    head = exchange.head
    if head.method != "CONNECT" and "://" not in head.target[:12]:
        await route(exchange, head.target, token, aboard)
    elif not _knows(head.get("proxy-authorization"), token):
        await exchange.respond(407, (("proxy-authenticate", "Basic"),), b"the proxy's password is missing or wrong\n")
    elif aboard is None:
        await _nobody(exchange)
    elif head.method == "CONNECT" and head.target.startswith(MCP_HOST):
        await aboard.mcp(exchange, unquote(head.target.removeprefix(MCP_HOST)))
    else:
        await aboard.web(exchange)


async def route(exchange: Exchange, path: str, token: str, aboard: Aboard | None) -> None:
    """Serves a request to one of our own paths, `/token/plane/...`."""
    first, _, rest = path[1:].partition("/")
    plane, slash, rest = rest.partition("/")
    if not slash or not _same(first, token) or plane not in PLANES:
        await exchange.respond(404, body=b"not found\n")
    elif aboard is None:
        await _nobody(exchange)
    else:
        await (aboard.mcp(exchange, rest) if plane == "mcp" else aboard.model(exchange, plane, f"/{rest}"))


async def _nobody(exchange: Exchange) -> None:
    exchange.keep_alive = False  # a client that tries again, or calls in the next trial, comes on a new connection
    await exchange.respond(503, (("content-type", "application/json"),), NO_TRIAL)


def _knows(authorization: str | None, token: str) -> bool:
    scheme, _, coded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return False
    try:
        _, _, password = base64.b64decode(coded).decode("utf-8").partition(":")
    except ValueError:
        return False
    return _same(password, token)


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())
