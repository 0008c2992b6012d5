"""Why an agent could not be reached, in words, with what to do."""

from __future__ import annotations

import errno

from aiohttp import ClientConnectorCertificateError, ClientConnectorDNSError, ClientConnectorError, ClientSSLError
from yarl import URL

from holdfast.errors import AgentUnavailable


def unreachable(error: Exception, url: URL, timeout_s: float) -> AgentUnavailable:
    """The error of a trial whose agent gave no connection."""
    why, hint = _reason(error, url, timeout_s)
    return AgentUnavailable(f"cannot reach the agent at {shown(url)}: {why}", hint=hint)


def shown(url: URL) -> str:
    """The URL without what may be secret: user, password, query."""
    return str(url.with_user(None).with_query(None))


def _reason(error: Exception, url: URL, timeout_s: float) -> tuple[str, str]:
    if isinstance(error, TimeoutError):
        return f"no connection within {timeout_s * 1000:.0f} ms", "check host, port and firewall of agent.endpoint"
    if isinstance(error, ClientConnectorDNSError):
        return f"unknown host {url.host}", "check the host name in agent.endpoint"
    if isinstance(error, ClientConnectorCertificateError):
        return "its certificate is not trusted", "name the authority that signed it in SSL_CERT_FILE"
    if isinstance(error, ClientSSLError):
        return "it does not speak TLS as expected", "check whether agent.endpoint should start with http://"
    if isinstance(error, ClientConnectorError):
        return _of_the_system(error.os_error)
    return f"the connection failed ({type(error).__name__})", "check that agent.endpoint names an HTTP server"


def _of_the_system(error: OSError) -> tuple[str, str]:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many open files on this machine", "lower advanced.concurrency or raise `ulimit -n`"
    if isinstance(error, ConnectionRefusedError) or "refused" in str(error).lower():
        return "connection refused", "start the agent, or correct agent.endpoint"
    return error.strerror or str(error), "check that the agent runs and agent.endpoint is right"
