"""The isolation features of a bubblewrap sandbox, and those that this machine enforces."""

from __future__ import annotations

import platform
import re

from msgspec.structs import replace

from holdfast.model.capabilities import (
    ALWAYS,
    COMMANDS,
    CPU,
    DISK,
    FAMILIES,
    MEMORY,
    NESTED,
    PIDS,
    build_enforced,
    build_missing,
)
from holdfast.model.world import Isolation, Resources
from holdfast.world.sandbox import kernel, limits

_SCOPE = {"evidence": "observations of the gateway, services, the kernel and the file system, and the run's files"}
"""The scope of a feature whose name does not say it."""
_PER_NAMESPACE = (5, 14)
"""The first kernel on which a process limit counts only the processes of one user namespace."""


def list_machine_isolation(*, commands: bool) -> tuple[Isolation, ...]:
    """Return what every sandbox here enforces; `commands`: the kernel reported the test command."""
    grouped = limits.find_parents()
    major, minor = map(int, re.findall(r"\d+", platform.release())[:2])
    scopes = {
        FAMILIES: "",
        PIDS: "",
        MEMORY: "including files, which are kept in memory",
        CPU: "",
        COMMANDS: "the kernel reports each start; Holdfast then reads the argv, which a thread of the agent may change",
    }
    missing = {
        FAMILIES: None if kernel.can_filter() else build_missing("kernel-filter-unknown", machine=platform.machine()),
        PIDS: None if (major, minor) >= _PER_NAMESPACE else build_missing("pids-shared"),
        MEMORY: None if "memory" in grouped else build_missing("no-memory-group"),
        CPU: None if "cpu" in grouped else build_missing("no-cpu-group"),
        COMMANDS: None if commands else build_missing("commands-unreported", who="the kernel"),
    }
    always = (build_enforced(feature, _SCOPE.get(feature, "")) for feature in ALWAYS)
    return (*always, *(missing[feature] or build_enforced(feature, note) for feature, note in scopes.items()))


def list_sandbox_isolation(
    machine: tuple[Isolation, ...], resources: Resources, pids: int, *, disk: int = 0, nested: bool = False
) -> tuple[Isolation, ...]:
    """Return what one sandbox enforces: a limit that is not set is not enforced, unless there is a default."""
    # A limit that the machine could enforce, but that nobody set, does not hold: it must not be reported as enforced.
    unset = {MEMORY: resources.memory is None, CPU: resources.cpu is None, DISK: resources.disk is None}
    defaults = {DISK: f"{disk >> 20:,} MiB" if disk else "", PIDS: str(pids) if resources.pids is None else ""}

    def adjust(isolation: Isolation) -> Isolation:
        feature, default = isolation.feature, defaults.get(isolation.feature, "")
        if nested and feature == NESTED:
            return build_missing("nesting-allowed")
        if isolation.enforced and default and unset.get(feature, True):
            return build_enforced(feature, f"{default}, as the spec sets none")
        return replace(build_missing("limit-unset", feature), asked=False) if unset.get(feature) else isolation

    return tuple(map(adjust, machine))
