"""URL globs: `https://api.example.com/*`, `*.example.com`, `example.com/v1/*`."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def url_matches(glob: str, url: str) -> bool:
    """Whether a URL is meant. A glob without a scheme means both; one without a path means every path."""
    if fnmatchcase(url, glob):
        return True
    scheme, host, path = _parts(glob)
    found = urlsplit(url)
    port = found.port or _PORTS.get(found.scheme, 0)
    if not fnmatchcase(found.scheme, scheme):
        return False
    name = (found.hostname or "").lower()
    if not _host_matches(host, name, port, found.scheme):
        return False
    where = (found.path or "/") + (f"?{found.query}" if found.query and "?" in path else "")
    return fnmatchcase(where, path)


def is_url(tool: str) -> bool:
    """Whether what a recording calls a tool is a URL or a glob of some: not a name, nor `server/tool`."""
    host, slash, _ = tool.partition("/")
    return (
        "://" in tool or host.startswith("*.") or (bool(slash) and ("." in host or ":" in host or host == "localhost"))
    )


def is_origin(target: str) -> bool:
    """Whether it says only where a connection goes: `https://example.com:8443`, no path."""
    _, sep, rest = target.partition("://")
    return bool(sep) and "/" not in rest


def origin_matches(glob: str, origin: str) -> bool:
    """Whether any URL at this origin could be meant."""
    found = urlsplit(origin)
    if not fnmatchcase(found.scheme, _parts(glob)[0]):
        return False
    return host_matches(glob, found.hostname or "", found.port or _PORTS.get(found.scheme, 0))


def declares(globs: Iterable[str], url: str) -> bool:
    """Whether one of the globs names this URL, or a URL at this origin: one for every host names none."""
    meant = origin_matches if is_origin(url) else url_matches
    return any(_names_a_host(glob) and meant(glob, url) for glob in globs)


def host_matches(glob: str, host: str, port: int) -> bool:
    """Whether any URL at this host and port could be meant: what decides if its TLS is looked into."""
    name = _parts(glob)[1]
    if "*" in name.removeprefix("*.") or "?" in name:
        return True  # a glob over whole URLs: only the URL can tell
    return _host_matches(name, host.lower(), port, "https" if port == 443 else "")


def _names_a_host(glob: str) -> bool:
    host = _parts(glob)[1]
    return bool((host.rpartition(":")[0] if _has_port(host) else host).strip("*?."))


def _host_matches(glob: str, host: str, port: int, scheme: str) -> bool:
    name, colon, wanted = glob.rpartition(":") if _has_port(glob) else (glob, "", "")
    if colon and wanted != "*" and wanted != str(port):
        return False
    if not colon and "*" not in glob and scheme and port != _PORTS.get(scheme, port):
        return False
    if name.startswith("["):  # an IPv6 address, not a class of characters
        return host == name.strip("[]")
    return fnmatchcase(host, name)


def _has_port(glob: str) -> bool:
    tail = glob.rpartition(":")[2]
    return ":" in glob and (tail.isdigit() or tail == "*")


@cache
def _parts(glob: str) -> tuple[str, str, str]:
    """Scheme, host and path of a glob, each a glob of its own."""
    scheme, sep, rest = glob.partition("://")
    if not sep:
        scheme, rest = "*", glob
    host, slash, path = rest.partition("/")
    if not slash and host == "*":
        return scheme, "*", "*"
    return scheme, host.lower() or "*", f"/{path}" if slash else "*"
