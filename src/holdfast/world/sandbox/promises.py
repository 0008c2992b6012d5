"""What a bubblewrap sandbox promises, and what of it this machine keeps."""

from __future__ import annotations

import platform

from holdfast.model.world import Isolation, Resources
from holdfast.world.sandbox import kernel, limits

NESTED = "nested user namespaces"
_WEAKENED = (
    "agent.nested_sandbox lets the agent have namespaces of its own: the kernel's calls for mounts and networks are in "
    "its reach, so that a fault of the kernel there would let it out"
)
ALWAYS = (
    "host files",
    "read-only system",
    "host processes",
    "network",
    "other trials",
    "evidence",
    "ipc",
    "no new privileges",
    "no capabilities",
    NESTED,
    "kernel settings",
    "workspace",
    "disk limit",
)
"""Without these there is no sandbox: one that cannot have them is not opened."""
_SCOPE = {"evidence": "what the gateway, services, the kernel and the file system saw, and the run's files"}
"""How far a promise goes, where its name does not say it."""
_PER_NAMESPACE = (5, 14)
"""The kernel from which on a limit on processes counts those of one user namespace only."""


def of_machine(*, commands: bool) -> tuple[Isolation, ...]:
    """What holds for every sandbox here; `commands`: whether we heard of the one that was tried."""
    machine = platform.machine()
    families = "" if kernel.can_filter() else f"no filter is known for {machine}: AF_VSOCK and others can be opened"
    heard = "" if commands else "the kernel does not tell of commands here"
    words = "that a command started is the kernel's word; its argv is read then, and a thread of its own may swap that"
    alone = _kernel() >= _PER_NAMESPACE
    shared = "" if alone else "this kernel counts all processes of the user, also those outside"
    return (
        *(Isolation(feature, True, _SCOPE.get(feature, "")) for feature in ALWAYS),
        Isolation("socket families", not families, families),
        Isolation("pids limit", alone, shared),
        *limits.kept(),
        Isolation("command audit", not heard, heard or words),
    )


def of_sandbox(
    machine: tuple[Isolation, ...], resources: Resources, pids: int, *, disk: int = 0, nested: bool = False
) -> tuple[Isolation, ...]:
    """The same with what was asked for: a limit that nobody set is not kept, unless there is a usual one."""
    asked = {
        "memory limit": resources.memory is not None,
        "cpu limit": resources.cpu is not None,
        "disk limit": resources.disk is not None,
    }
    told = []
    for one in machine:
        if nested and one.feature == NESTED:
            told.append(Isolation(NESTED, False, _WEAKENED))
        elif one.feature == "disk limit" and resources.disk is None and disk and one.enforced:
            told.append(Isolation(one.feature, True, f"{disk >> 20:,} MiB, as none was set"))
        elif one.feature in asked and not asked[one.feature]:
            told.append(Isolation(one.feature, False, "none was set", asked=False))
        elif one.feature == "pids limit" and resources.pids is None and one.enforced:
            told.append(Isolation(one.feature, True, f"{pids}, as none was set"))
        else:
            told.append(one)
    return tuple(told)


def _kernel() -> tuple[int, int]:
    major, minor, *_ = platform.release().split(".")
    return int(major), int("".join(c for c in minor if c.isdigit()) or 0)
