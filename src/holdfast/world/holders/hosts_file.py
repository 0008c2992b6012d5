"""The names that a program finds in /etc/hosts."""

from __future__ import annotations

from collections.abc import Mapping


def hosts_file(hosts: Mapping[str, str]) -> str:
    """Its text: this machine, and the address of each name."""
    names: dict[str, list[str]] = {"127.0.0.1": ["localhost", "holdfast"]}
    for name, address in hosts.items():
        names.setdefault(address, []).append(name)
    return "".join(f"{address} {' '.join(all)}\n" for address, all in names.items()) + "::1 localhost\n"
