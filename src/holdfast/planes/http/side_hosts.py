"""Hosts that programs call in addition to their work: telemetry, updates, sign-in; and model hosts that the gateway
does not support."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, get_args

SideKind: TypeAlias = Literal["telemetry", "update", "sign-in"]
SIDE_KINDS: tuple[str, ...] = get_args(SideKind)


def find_side_kind(host: str) -> str:
    """Return why a program calls the host in addition to its work, such as telemetry; empty if unknown."""
    kind = _find_kind(host)
    return kind if kind in SIDE_KINDS else ""


def find_unread_format(host: str) -> str:
    """Return the model format of a host that the gateway does not support; empty if it is not such a host."""
    name = host.lower().rstrip(".")
    return next((speaks for one, speaks in _load_hosts()[1].items() if _matches_host(one, name)), "")


def _find_kind(host: str) -> str:
    name = host.lower().rstrip(".")
    return next(
        (kind for kind, hosts in _load_hosts()[0].items() if any(_matches_host(one, name) for one in hosts)), ""
    )


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
