"""Hosts that programs call beside their work: telemetry, updates, sign-in; and models out of the gateway's reach."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, get_args

SideKind: TypeAlias = Literal["telemetry", "update", "sign-in"]
SIDE_KINDS: tuple[str, ...] = get_args(SideKind)


def side_kind(host: str) -> str:
    """What a program wants there that is not its work; empty if that is not known."""
    kind = _kind(host)
    return kind if kind in SIDE_KINDS else ""


def asks_elsewhere(host: str) -> bool:
    """Whether a model is asked there, in a way that the gateway does not speak."""
    return _kind(host) == "model"


def _kind(host: str) -> str:
    name = host.lower().rstrip(".")
    return next((kind for kind, hosts in _hosts().items() if any(_means(one, name) for one in hosts)), "")


def _means(listed: str, name: str) -> bool:
    if "*" in listed:
        return fnmatchcase(name, listed)
    return name == listed or name.endswith(f".{listed}")


@cache
def _hosts() -> dict[str, tuple[str, ...]]:
    import tomllib  # only where something was refused

    found = tomllib.loads((Path(__file__).parent / "side_hosts.toml").read_text(encoding="utf-8"))
    return {kind.replace("_", "-"): tuple(hosts) for kind, hosts in found.items()}
