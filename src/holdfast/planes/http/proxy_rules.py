"""Where a proxied request goes: the plane of its target, the connection to it, and the report if it is unreachable."""

from __future__ import annotations

import os
import socket
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import proxy_bypass_environment as bypassed  # type: ignore[attr-defined]  # not in its stubs

from holdfast.http1.client import UpstreamFailed, UpstreamReply, Upstreams
from holdfast.http1.heads import Fields
from holdfast.http1.outgoing_request import parse_endpoint
from holdfast.planes.egress_policy import NotPermitted, Policy
from holdfast.planes.http.authority import Authority
from holdfast.planes.http.request import Origin, RequestTarget
from holdfast.planes.urls import is_declared, matches_host
from holdfast.protocols.trial import TrialContext
from holdfast.streams.socket_stream import SocketStream

CACHED_S = 10.0
"""How long a resolved name is cached, in seconds: a client that connects a hundred times causes one lookup."""
RESOLVED_LIMIT = 1_000
_REPEATABLE = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE"))
"""Idempotent methods."""
NO_SERVICES: Mapping[tuple[str, int], tuple[str, int]] = {}


class Connector:
    """Connects for the proxy. Raises NotPermitted if the policy denies the target, UpstreamFailed if it does not
    answer."""

    def __init__(
        self, upstreams: Upstreams, policy: Policy, services: Mapping[tuple[str, int], tuple[str, int]] = NO_SERVICES
    ) -> None:
        """`services` maps hosts and ports that simulate services of the trial to the services' real addresses."""
        self._upstreams = upstreams
        self._services = services
        self._policy = policy
        self._resolved: dict[tuple[str, int], tuple[float, list[str]]] = {}

    def is_service(self, origin: Origin) -> bool:
        """Return whether the target is a service of the trial."""
        return (origin.host, origin.port) in self._services

    async def resolve_addresses(self, origin: Origin) -> list[str]:
        """Return the addresses to connect to, in order."""
        key, now = (origin.host, origin.port), get_running_loop().time()
        until, cached = self._resolved.get(key, (0.0, []))
        if until < now:
            try:
                cached = await self._policy.resolve_addresses(*key)
            except (socket.gaierror, UnicodeError) as unknown:
                raise UpstreamFailed("dns", f"the name {origin.host} cannot be resolved: {unknown}") from unknown
            if len(self._resolved) >= RESOLVED_LIMIT:
                self._resolved.clear()
            self._resolved[key] = now + CACHED_S, cached
        return cached

    async def send_request(
        self, target: RequestTarget, headers: Fields, body: bytes | AsyncIterator[bytes] | None
    ) -> UpstreamReply:
        """Forward a request."""
        service = self._services.get((target.origin.host, target.origin.port))
        if service is not None:
            url = f"http://{service[0]}:{service[1]}{target.path}"
            return await self._upstreams.send(target.method, url, headers, body)
        self._policy.ensure_permitted(target.origin.host, target.origin.port)
        return await self._upstreams.send(
            target.method,
            target.url,
            headers,
            body,
            addresses=await self.resolve_addresses(target.origin),
            once=target.method not in _REPEATABLE,
        )

    async def open_stream(self, origin: Origin, *, tls: bool = True) -> SocketStream:
        """Open a dedicated connection, with TLS for an https origin unless the client brings its own."""
        addresses = await self.resolve_addresses(origin)
        tls = tls and origin.scheme == "https"
        return await self._upstreams.open_stream(parse_endpoint(str(origin)), addresses, tls=tls)


def find_side_kind(host: str) -> str:
    """Return why a program calls the host in addition to its work, such as telemetry; empty if unknown."""
    name = host.lower().rstrip(".")
    kinds = (kind for kind, hosts in _load_hosts()[0].items() if any(_matches_host(listed, name) for listed in hosts))
    return next(kinds, "")


def find_unread_format(host: str) -> str:
    """Return the model format of a host that the gateway does not support; empty if it is not such a host."""
    name = host.lower().rstrip(".")
    return next((format_name for listed, format_name in _load_hosts()[1].items() if _matches_host(listed, name)), "")


def _matches_host(listed: str, name: str) -> bool:
    if "*" in listed:
        return fnmatchcase(name, listed)
    return name == listed or name.endswith(f".{listed}")


@cache
def _load_hosts() -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Load the hosts by kind, and the model hosts with their formats."""
    import tomllib  # only if the agent bypasses the gateway

    table = tomllib.loads((Path(__file__).parent / "side_hosts.toml").read_text(encoding="utf-8"))
    models = table.pop("model")
    return {kind.replace("_", "-"): tuple(hosts) for kind, hosts in table.items()}, models


class ProxyRules:
    """The rules of one proxy.

    `intercepted` are URL globs: TLS to a host is intercepted if a glob can match it or `is_model` is true for it; all
    other TLS passes unread. `asks_model` says whether a request, by its method, path and body, is a model call,
    whatever its host: then it is not a tool's. `own` is the address of Holdfast's own listener. `environ` is the user's
    environment, which may name a proxy.
    """

    def __init__(
        self,
        connector: Connector,
        authority: Authority,
        policy: Policy,
        *,
        intercepted: Iterable[str],
        is_model: Callable[[str], bool],
        asks_model: Callable[[str, str, Any], bool],
        own: tuple[str, int] | None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.connector = connector
        self.authority = authority
        self.policy = policy
        self._intercepted = tuple(intercepted)
        self._is_model = is_model
        self.asks_model = asks_model
        self._own = own
        self._user_proxies = {
            name.lower().removesuffix("_proxy"): value
            for name, value in environ.items()
            if name.lower() in ("http_proxy", "https_proxy", "no_proxy")
        }

    def is_own(self, origin: Origin) -> bool:
        """Return whether the target is Holdfast's own listener."""
        return self._own is not None and origin.port == self._own[1] and origin.host in (self._own[0], "localhost")

    def is_model(self, origin: Origin) -> bool:
        """Return whether this is a provider whose calls go to the gateway: at its own port, even if its name resolves
        elsewhere.

        Egress rules do not apply here: the gateway is always allowed, and forwards only where the rules allow it.
        """
        at_home = origin.scheme == "https" and origin.port == 443 and not self.connector.is_service(origin)
        return at_home and self._is_model(origin.host)

    def is_intercepted(self, origin: Origin) -> bool:
        """Return whether TLS to this target is intercepted."""
        return self.is_model(origin) or any(matches_host(glob, origin.host, origin.port) for glob in self._intercepted)

    def is_declared(self, url: str) -> bool:
        """Return whether the spec names this URL, or a URL at this origin."""
        return is_declared(self._intercepted, url)

    def report_refusal(self, context: TrialContext, origin: Origin, why: NotPermitted) -> None:
        """Report a target that the policy denies. If Holdfast routed loopback calls here, that is a harness error."""
        text = f"the proxy refused {origin}: {why}"
        self.note_model(context, origin, f"it was refused ({why})")
        if self.policy.has_loopback_target and why.loopback:
            context.sink.add_error(text, "call-failed")
        else:
            context.sink.note(text)

    def report_unreachable(self, context: TrialContext, origin: Origin, url: str, why: str) -> None:
        """Report an upstream failure without a fault: a harness error if the spec names the URL, otherwise a note."""
        text = f"{origin.place} could not be reached through the proxy, and no fault caused it: {why}"
        self.note_model(context, origin, f"it could not be reached ({why})")
        if self.is_declared(url):
            context.sink.add_error(text, "call-failed")
        else:
            context.sink.note(text)

    def note_model(self, context: TrialContext, origin: Origin, failed: str = "") -> None:
        """Note that a model may be called there in an unsupported format; `failed`: it gave no answer."""
        if format_name := find_unread_format(origin.host):
            context.sink.record_unread_model(origin.host, format_name, failed)

    def note_bypassed(self, context: TrialContext, origin: Origin) -> None:
        """Note that the user's own proxy is not used, which may be why a target cannot be reached."""
        if self._user_proxies.get(origin.scheme) and not bypassed(origin.host, self._user_proxies):
            name = f"{origin.scheme.upper()}_PROXY"
            context.sink.note(f"your {name} is not used: Holdfast's proxy connects to {origin.place} directly")
