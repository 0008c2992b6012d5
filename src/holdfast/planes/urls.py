"""URL globs: `https://api.example.com/*`, `*.example.com`, `example.com/v1/*`."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}


def matches_url(glob: str, url: str) -> bool:
    """Return whether the glob matches a URL. A glob without a scheme matches both schemes; one without a path matches
    every path."""
    if fnmatchcase(url, glob):
        return True
    scheme, host, path = _split_glob(glob)
    parts = urlsplit(url)
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    if not fnmatchcase(parts.scheme, scheme):
        return False
    name = (parts.hostname or "").lower()
    if not _matches_host_glob(host, name, port, parts.scheme):
        return False
    location = (parts.path or "/") + (f"?{parts.query}" if parts.query and "?" in path else "")
    return fnmatchcase(location, path)


def is_url(tool: str) -> bool:
    """Return whether a recorded tool name is a URL or a URL glob, rather than a name or `server/tool`."""
    host, slash, _ = tool.partition("/")
    return (
        "://" in tool or host.startswith("*.") or (bool(slash) and ("." in host or ":" in host or host == "localhost"))
    )


def is_origin(target: str) -> bool:
    """Return whether it names only the target of a connection: `https://example.com:8443`, without a path."""
    _, sep, rest = target.partition("://")
    return bool(sep) and "/" not in rest


def matches_origin(glob: str, origin: str) -> bool:
    """Return whether the glob could match a URL at this origin."""
    parts = urlsplit(origin)
    if not fnmatchcase(parts.scheme, _split_glob(glob)[0]):
        return False
    return matches_host(glob, parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme, 0))


def is_declared(globs: Iterable[str], url: str) -> bool:
    """Return whether one of the globs names this URL, or a URL at this origin. A glob for every host names none."""
    matches = matches_origin if is_origin(url) else matches_url
    for glob in globs:
        host = _split_glob(glob)[1]
        name = host.rpartition(":")[0] if _has_port(host) else host
        if name.strip("*?.") and matches(glob, url):
            return True
    return False


def matches_host(glob: str, host: str, port: int) -> bool:
    """Return whether the glob could match a URL at this host and port: decides whether TLS there is intercepted."""
    name = _split_glob(glob)[1]
    if "*" in name.removeprefix("*.") or "?" in name:
        return True  # a glob over complete URLs: only the URL can decide
    return _matches_host_glob(name, host.lower(), port, "https" if port == 443 else "")


def _matches_host_glob(glob: str, host: str, port: int, scheme: str) -> bool:
    name, colon, wanted_port = glob.rpartition(":") if _has_port(glob) else (glob, "", "")
    if colon and wanted_port != "*" and wanted_port != str(port):
        return False
    if not colon and "*" not in glob and scheme and port != DEFAULT_PORTS.get(scheme, port):
        return False
    if name.startswith("["):  # an IPv6 address, not a character class
        return host == name.strip("[]")
    return fnmatchcase(host, name)


def _has_port(glob: str) -> bool:
    tail = glob.rpartition(":")[2]
    return ":" in glob and (tail.isdigit() or tail == "*")


@cache
def _split_glob(glob: str) -> tuple[str, str, str]:
    """Split a glob into scheme, host and path; each is a glob itself."""
    scheme, sep, rest = glob.partition("://")
    if not sep:
        scheme, rest = "*", glob
    host, slash, path = rest.partition("/")
    if not slash and host == "*":
        return scheme, "*", "*"
    return scheme, host.lower() or "*", f"/{path}" if slash else "*"
