"""Connects for the proxy, only to addresses that the policy has checked."""

from __future__ import annotations

import socket
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Mapping, Sequence

from holdfast.http1.client import UpstreamFailed, UpstreamReply, Upstreams
from holdfast.planes.egress_policy import Policy
from holdfast.planes.http.request import Origin, RequestTarget
from holdfast.streams.socket_stream import UPGRADE, SocketStream

KEPT_S = 10.0
"""How long a resolved name is cached, in seconds: a client that connects a hundred times causes one lookup."""
KEPT = 1_000
_REPEATABLE = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE"))
"""Idempotent methods."""
CONNECT_S = 10.0
NOBODY: Mapping[tuple[str, int], tuple[str, int]] = {}


class Connector:
    """Connects for the proxy. Raises NotPermitted if the policy denies the target, UpstreamFailed if it does not
    answer."""

    def __init__(
        self, upstreams: Upstreams, policy: Policy, nearby: Mapping[tuple[str, int], tuple[str, int]] = NOBODY
    ) -> None:
        """`nearby` maps hosts and ports that simulate services of the trial to the services' real addresses."""
        self._upstreams = upstreams
        self._nearby = nearby
        self._policy = policy
        self._known: dict[tuple[str, int], tuple[float, list[str]]] = {}

    def is_service(self, origin: Origin) -> bool:
        """Return whether the target is a service of the trial."""
        return (origin.host, origin.port) in self._nearby

    async def resolve_addresses(self, origin: Origin) -> list[str]:
        """Return the addresses to connect to, in order."""
        key, now = (origin.host, origin.port), get_running_loop().time()
        until, cached = self._known.get(key, (0.0, []))
        if until < now:
            try:
                cached = await self._policy.resolve_addresses(*key)
            except (socket.gaierror, UnicodeError) as unknown:
                raise UpstreamFailed("dns", f"the name {origin.host} cannot be resolved: {unknown}") from unknown
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[key] = now + KEPT_S, cached
        return cached

    async def send_request(
        self, want: RequestTarget, headers: Sequence[tuple[str, str]], body: bytes | AsyncIterator[bytes] | None
    ) -> UpstreamReply:
        """Forward a request."""
        service = self._nearby.get((want.origin.host, want.origin.port))
        if service is not None:
            url = f"http://{service[0]}:{service[1]}{want.path}"
            return await self._upstreams.send(want.method, url, headers, body, connect_s=CONNECT_S)
        self._policy.ensure_permitted(want.origin.host, want.origin.port)
        failed = _build_no_address_error(want.origin)
        for address in await self.resolve_addresses(want.origin):
            try:
                return await self._upstreams.send(
                    want.method,
                    want.url,
                    headers,
                    body,
                    connect_s=CONNECT_S,
                    address=address,
                    once=want.method not in _REPEATABLE,
                )
            except UpstreamFailed as refused:
                if refused.kind != "refused":  # otherwise nothing was sent, and another address may work
                    raise
                failed = refused
        raise failed

    async def open_stream(self, origin: Origin, *, tls: bool = True) -> SocketStream:
        """Open a dedicated connection, with TLS for an https origin unless the client brings its own."""
        context = self._upstreams.get_tls_context() if tls and origin.scheme == "https" else None
        failed = _build_no_address_error(origin)
        for address in await self.resolve_addresses(origin):
            wire = SocketStream()
            wire.hold(UPGRADE)
            try:
                await wire.connect(address, origin.port, CONNECT_S, context, origin.host)
            except UpstreamFailed as refused:
                failed = refused
            else:
                return wire
        raise failed


def _build_no_address_error(origin: Origin) -> UpstreamFailed:
    return UpstreamFailed("dns", f"{origin.host} has no address")
