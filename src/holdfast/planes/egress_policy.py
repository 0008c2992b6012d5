"""Decides where the proxy may connect: egress rules by name, and this machine only if the spec names it.

Addresses are checked after the name is resolved, and the connection goes to the checked address. A name that resolves
differently the second time therefore cannot bypass the check.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from holdfast.planes.urls import DEFAULT_PORTS

Address: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]

_METADATA = frozenset(map(ip_address, (
    "169.254.169.254",  # most clouds
    "169.254.170.2", "169.254.170.23", "fd00:ec2::23",  # AWS: credentials of tasks and pods
    "fd00:ec2::254", "fd00:ec2::123", "fd00:ec2::253",  # AWS by IPv6: instances, time, names
    "100.100.100.200", "100.100.100.201",  # Alibaba Cloud
    "192.0.0.192",  # Oracle Cloud
    "168.63.129.16",  # Azure: its host agent
    "169.254.169.123", "169.254.169.253",  # AWS: time, names
    "169.254.42.42", "fd00:42::42",  # Scaleway
    "fd20:ce::254",  # Google Cloud by IPv6
    "fe80::a9fe:a9fe",  # OpenStack by IPv6
)))  # fmt: skip
"""Metadata services of cloud providers, which hand out a machine's identity and credentials."""
_NAT64 = ip_network("64:ff9b::/96")
_LOOPBACK = ("127.0.0.1", "::1")


class NotPermitted(Exception):
    """The proxy does not connect there; the message says why."""

    def __init__(self, why: str, *, loopback: bool = False) -> None:
        super().__init__(why)
        self.loopback = loopback
        """Whether the target is a loopback address that the spec does not name."""


class Policy:
    """Decides where the proxy may connect.

    `allowed` holds the URLs, URL globs and `host:port` pairs that the spec names. An entry with a literal host and port
    counts as declared and may be on this machine. `allow` holds egress globs: `*.example.com`,
    `api.x.com:443`.
    """

    def __init__(
        self,
        allowed: Iterable[str] = (),
        *,
        default: Literal["allow", "deny"] = "allow",
        allow: Iterable[str] = (),
        resolve: Resolve | None = None,
    ) -> None:
        self._declared = frozenset(place for url in allowed for place in _parse_places(url))
        self._default = default
        self._allow = tuple(allow)
        self._resolve = resolve or _resolve_host

    def is_declared(self, host: str, port: int) -> bool:
        """Return whether the spec names exactly this host and port."""
        return (host.lower().rstrip("."), port) in self._declared

    @property
    def has_loopback_target(self) -> bool:
        """Whether a declared target is on this machine, judged by its name."""
        return any(
            host == "localhost" or (_is_address(host) and _explain_denial(_unwrap_ipv4(ip_address(host))) is not None)
            for host, _ in self._declared
        )

    def ensure_permitted(self, host: str, port: int) -> None:
        """Raise NotPermitted if the egress rules deny the request. Called for every request."""
        if not self.is_permitted(host, port):
            raise NotPermitted(f"network.egress does not allow {host}:{port}")

    def is_permitted(self, host: str, port: int) -> bool:
        """Return whether the egress rules allow the request."""
        is_allowed = self._default != "deny" or any(_matches_glob(glob, host, port) for glob in self._allow)
        return is_allowed or self.is_declared(host, port)

    async def resolve_addresses(self, host: str, port: int) -> list[str]:
        """Return the checked addresses to connect to.

        Raises NotPermitted if all are denied, OSError if there are none.
        """
        self.ensure_permitted(host, port)
        resolved = [str(ip_address(host))] if _is_address(host) else await self._resolve(host, port)
        if self.is_declared(host, port):
            return resolved
        # A name may resolve to good and bad addresses. Only good ones are used; if there is none, the reason names the
        # first bad one, and says whether a loopback address was meant.
        good, denials, loopback = [], [], False
        for text in dict.fromkeys(resolved):
            address = _unwrap_ipv4(ip_address(text.partition("%")[0]))
            loopback = loopback or address.is_loopback
            denial = None if (str(address), port) in self._declared else _explain_denial(address)
            if denial is None:
                good.append(text)
            else:
                denials.append(denial)
        if not good:
            why = denials[0] if denials else "no address"
            raise NotPermitted(f"{host}:{port} is {why}, and the spec does not name it", loopback=loopback)
        return good


def _parse_places(url: str) -> Iterable[tuple[str, int]]:
    """Return the host and ports that a URL or `host:port` names; `localhost` includes its addresses.

    Without a scheme and a port, both default ports are meant, as for every other URL in a spec.
    """
    text = url if "://" in url else f"//{url}"
    try:
        parts = urlsplit(text)
        host, written_port = (parts.hostname or "").rstrip("."), parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:  # the port is a glob
        return
    if not host or (written_port is None and parts.scheme) or any(sign in host for sign in "*?["):
        return
    for port in DEFAULT_PORTS.values() if written_port is None else (written_port,):
        yield host, port
        if host == "localhost":
            yield from ((address, port) for address in _LOOPBACK)


def _matches_glob(glob: str, host: str, port: int) -> bool:
    name, colon, wanted_port = glob.lower().rpartition(":")
    if colon and (wanted_port.isdigit() or wanted_port == "*"):
        return wanted_port in ("*", str(port)) and fnmatchcase(host.lower(), name)
    return fnmatchcase(host.lower(), glob.lower())


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _unwrap_ipv4(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address, if there is one."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _explain_denial(address: Address) -> str | None:
    """Return why the proxy must not connect to an address; None if it may."""
    if address in _METADATA:
        return "a metadata service"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_unspecified or address.is_multicast or address.is_reserved:
        return "not an address of a single host"
    return "an address of this machine" if _is_own_address(address) else None


def _is_own_address(address: Address) -> bool:
    """Return whether this is an address of this machine: only those can be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


async def _resolve_host(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    answers = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in answers))
