"""The real provider, or the server that the user's environment names instead."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from urllib.parse import urlsplit

from holdfast.http1.client import UpstreamFailed, UpstreamReply, Upstreams
from holdfast.http1.heads import RawFields
from holdfast.model.shorten import shorten
from holdfast.planes.egress_policy import NotPermitted, Policy
from holdfast.planes.llm.sources.provider_hosts import (
    HOSTS,
    find_named_base,
    find_own_key,
    is_public,
    join_url,
    remove_key,
)
from holdfast.planes.llm.sources.source import (
    PLACEHOLDER_KEY,
    Destination,
    NoModel,
    PassedReply,
    Query,
    RawReply,
    UpstreamDown,
)
from holdfast.planes.urls import DEFAULT_PORTS

_REASONS = {
    "dns": "its name cannot be resolved",
    "refused": "it accepts no connections",
    "tls": "no trusted TLS connection is possible",
    "timeout": "it took too long",
    "closed": "it closed the connection",
    "protocol": "its reply is not HTTP",
}


class Provider:
    """Forwards calls to a provider, with the agent's own key or, if it has none, the user's."""

    def __init__(
        self, provider: str, upstreams: Upstreams, environ: Mapping[str, str], policy: Policy | None = None
    ) -> None:
        self._policy = policy or Policy()
        self._provider = provider
        self._upstreams = upstreams
        self._user_base = find_named_base(provider, environ)
        self._key = find_own_key(provider, environ)

    async def answer(self, query: Query) -> PassedReply:
        """Return the provider's reply; raise NoModel if there is neither a key nor an address."""
        to = await self.find_destination(query)
        try:
            return await send_request(self._upstreams, query.method, to.url, to.headers, query.body, to.addresses)
        except UpstreamDown as failed:
            base = self._find_base(query)
            if failed.kind == "refused" and base == HOSTS["ollama"].public and self._user_base is None:
                raise NoModel(
                    query.model, f"no Ollama server was found at {base}, and OLLAMA_HOST is not set"
                ) from failed
            raise

    async def find_destination(self, query: Query) -> Destination:
        """Return the target of a request, and the key to send."""
        # The user's own key is sent only if the agent has none, and only to the host that the user's environment or the
        # provider's library names: an agent could otherwise send it anywhere by naming a host.
        keyless = query.key in ("", PLACEHOLDER_KEY)
        if keyless and self._key is None and self._user_base is None and self._provider != "ollama":
            host = urlsplit(query.base_url or "").hostname
            if query.base_url and not is_public(self._provider, host or ""):
                raise NoModel(query.model, f"the agent has no key for {query.base_url}")
            raise NoModel(query.model, f"{HOSTS[self._provider].key_variables[0][0]} is not set")
        base = self._find_base(query)
        key = self._key if keyless and self._is_trusted(base) else None
        path = remove_key(query.path) if keyless else query.path
        url = base + path if query.base_url else join_url(self._provider, base, path)
        headers = query.headers.to_upstream(key, strip=keyless)
        if not query.base_url:
            return Destination(url, headers)
        return Destination(url, headers, await self._check_addresses(query.base_url))

    async def _check_addresses(self, base: str) -> tuple[str | None, ...]:
        """Return the checked addresses of a host that the agent itself named, as for all proxied requests."""
        parts = urlsplit(base)
        try:
            return tuple(
                await self._policy.resolve_addresses(parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme])
            )
        except OSError as unknown:
            raise build_down_error(UpstreamFailed("dns", str(unknown)), base) from unknown
        except NotPermitted as refused:
            why = f"the model at {base} was not called: {refused}"
            remedy = 'Add it to network.egress.allow, or assign another server: `models: {"*": …}`'
            raise UpstreamDown(f"{why}. {remedy}") from refused

    def _find_base(self, query: Query) -> str:
        return (query.base_url or self._user_base or HOSTS[self._provider].public).rstrip("/")

    def _is_trusted(self, base: str) -> bool:
        """Return whether the user's key may be sent to this address: never to a host that the agent chooses."""
        meant = urlsplit(self._user_base or HOSTS[self._provider].public)
        parts = urlsplit(base)
        return (parts.scheme, parts.netloc) == (meant.scheme, meant.netloc)


class ArrivingReply(RawReply):
    """A reply as it arrives from an address."""

    def __init__(self, incoming: UpstreamReply, origin: str) -> None:
        super().__init__(incoming.status, incoming.reason, incoming.headers)
        self._incoming = incoming
        self._origin = origin

    async def stream_body(self) -> AsyncIterator[bytes]:
        try:
            while data := await self._incoming.inflow.get():
                yield data
        except UpstreamFailed as failed:
            raise build_down_error(failed, self._origin) from failed
        finally:
            self._incoming.abort()  # nothing, if all of it has arrived

    def abort(self) -> None:
        self._incoming.abort()


async def send_request(
    upstreams: Upstreams,
    method: str,
    url: str,
    headers: RawFields,
    body: bytes,
    addresses: Sequence[str | None] = (None,),
) -> PassedReply:
    """Send one request to a server; UpstreamDown names the failed address and the reason, without path or key.

    It goes to the first of the `addresses` that accepts connections; None means whatever the name resolves to.
    """
    if not url.startswith(("http://", "https://")):
        raise UpstreamDown(f"the model cannot be called at {shorten(url, 80)}: it is not an http or https URL")
    bare = url.partition("?")[0]
    server = extract_origin(bare)
    try:
        incoming = await upstreams.send(method, url, headers, body or None, addresses=addresses)
    except UpstreamFailed as failed:
        raise build_down_error(failed, server) from failed
    return PassedReply(ArrivingReply(incoming, server), server, url=bare)


def extract_origin(url: str) -> str:
    """Return scheme, host and port of a URL without its query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def build_down_error(failed: UpstreamFailed, origin: str) -> UpstreamDown:
    """Return the error for a failed connection to a model's server."""
    why = f"the model at {origin} did not answer: {_REASONS[failed.kind]} ({failed})"
    return UpstreamDown(why, kind=failed.kind)
