"""ProxyRules: which plane a target belongs to, where TLS is intercepted, and how unreachable targets are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.request import proxy_bypass_environment as bypassed  # type: ignore[attr-defined]  # not in its stubs

from holdfast.planes.egress_policy import NotPermitted, Policy
from holdfast.planes.http.authority import Authority
from holdfast.planes.http.connector import Connector
from holdfast.planes.http.request import Origin
from holdfast.planes.http.side_hosts import find_unread_format
from holdfast.planes.urls import is_declared, matches_host
from holdfast.protocols.trial import TrialContext


class ProxyRules:
    """The rules of one proxy.

    `looked_into` are URL globs: TLS to a host is intercepted if a glob can match it or `is_model` is true for it; all
    other TLS passes unread. `environ` is the user's environment, which may name a proxy.
    """

    def __init__(
        self,
        connector: Connector,
        authority: Authority,
        policy: Policy,
        *,
        looked_into: Iterable[str],
        is_model: Callable[[str], bool],
        asks_model: Callable[[str, str, Any], bool],
        own: tuple[str, int] | None,
        environ: Mapping[str, str],
    ) -> None:
        self.connector = connector
        self.authority = authority
        self.policy = policy
        self._looked_into = tuple(looked_into)
        self._is_model = is_model
        self.asks_model = asks_model
        """Whether a request, by its method, path and body, is a model call, whatever its host: then it is not a tool's.
        """
        self._own = own
        self._around = {
            name.lower().removesuffix("_proxy"): value for name, value in environ.items() if _is_proxy_variable(name)
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
        return self.is_model(origin) or any(matches_host(glob, origin.host, origin.port) for glob in self._looked_into)

    def is_declared(self, url: str) -> bool:
        """Return whether the spec names this URL, or a URL at this origin."""
        return is_declared(self._looked_into, url)

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
        if speaks := find_unread_format(origin.host):
            context.sink.record_unread_model(origin.host, speaks, failed)

    def note_bypassed(self, context: TrialContext, origin: Origin) -> None:
        """Note that the user's own proxy is not used, which may be why a target cannot be reached."""
        if self._around.get(origin.scheme) and not bypassed(origin.host, self._around):
            name = f"{origin.scheme.upper()}_PROXY"
            context.sink.note(f"your {name} is not used: Holdfast's proxy connects to {origin.place} directly")


def _is_proxy_variable(variable: str) -> bool:
    """Return whether a variable names a proxy, or hosts that bypass one."""
    return variable.lower() in ("http_proxy", "https_proxy", "no_proxy")
