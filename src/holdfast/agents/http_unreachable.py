"""Why an agent could not be reached, in words, with what to do."""

from __future__ import annotations

import errno

from holdfast.agents.http_url import HttpUrl
from holdfast.errors import AgentUnavailable
from holdfast.streams.failures import FailureKind


def unreachable(kind: FailureKind, error: BaseException | None, url: HttpUrl, timeout_s: float) -> AgentUnavailable:
    """The error of a trial whose agent gave no connection, for a failure of this kind and what the system said."""
    why, hint = _reason(kind, error, url, timeout_s)
    return AgentUnavailable(f"cannot reach the agent at {url.shown}: {why}", hint=hint)


def _reason(kind: FailureKind, error: BaseException | None, url: HttpUrl, timeout_s: float) -> tuple[str, str]:
    if kind == "timeout":
        return f"no connection within {timeout_s * 1000:.0f} ms", "check host, port and firewall of agent.endpoint"
    if kind == "dns":
        return f"unknown host {url.endpoint.host}", "check the host name in agent.endpoint"
    if kind == "tls":
        return _of_tls(error)
    if isinstance(error, OSError):
        return _of_the_system(error)
    return f"the connection failed ({type(error).__name__})", "check that agent.endpoint names an HTTP server"


def _of_tls(error: BaseException | None) -> tuple[str, str]:
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not trusted", "name the authority that signed it in SSL_CERT_FILE"
    return "it does not speak TLS as expected", "check whether agent.endpoint should start with http://"


def _of_the_system(error: OSError) -> tuple[str, str]:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many open files on this machine", "lower advanced.concurrency or raise `ulimit -n`"
    if isinstance(error, ConnectionRefusedError) or "refused" in str(error).lower():
        return "connection refused", "start the agent, or correct agent.endpoint"
    return error.strerror or str(error), "check that the agent runs and agent.endpoint is right"
