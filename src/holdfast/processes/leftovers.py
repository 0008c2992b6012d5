"""Kills processes that a trial left behind, including daemons. On systems other than Linux, only the process group."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
OWN_COMMAND = "HOLDFAST_OWN_COMMAND"
"""A variable in the environment of Holdfast's own commands, to distinguish their file accesses from the agent's."""
ROUNDS = 50
"""Maximum number of rounds: each may uncover a new generation of daemons, and a chain is rarely three long."""


def list_children() -> set[int]:
    """Return the direct children of this process; orphans below a subreaper become its children."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as listed:
            return set(map(int, listed.read().split()))
    except OSError:
        return set()


def list_family(pids: Iterable[int]) -> Iterator[int]:
    """Yield these processes and all their descendants, nearest first."""
    waiting = deque(pids)
    while waiting:
        yield waiting[0]
        pid = waiting.popleft()
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:  # each thread has its own list of children
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as children:
                waiting += map(int, children.read().split())


def has_children() -> bool:
    """Return whether this process has children, alive or not yet reaped."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def reap_children() -> Iterator[tuple[int, int]]:
    """Reap every child that has ended: its process id and waitpid status."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def end_orphans(spared: set[int]) -> set[int]:
    """Kill and reap every child of this process except `spared`, and their descendants; return the survivors."""
    # This process is a subreaper: when a process is killed, its children become its own. One round may thus bring up
    # the next generation of daemons, so it repeats until a round finds nobody.
    orphans = list_children() - spared
    for _ in range(ROUNDS):
        if not orphans:
            break
        for pid in orphans:
            kill(pid, signal.SIGKILL)
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                continue
        orphans = list_children() - spared
    return orphans


def end_marked(name: str, value: str) -> set[int]:
    """Kill every process whose environment has this variable; return the survivors."""
    mark = f"{name}={value}".encode()
    # A process may fork between the look at it and its end. So this repeats until a round finds nobody with the mark.
    killed: set[int] = set()
    for _ in range(ROUNDS):
        killed = set(_find_marked(mark))
        if not killed:
            break
        for pid in killed:
            kill(pid, signal.SIGKILL)
    return killed


def describe_survivors(count: int) -> tuple[str, ...]:
    """Return the note about processes that could not be killed; empty if there are none."""
    return (f"{count} of the processes that it left behind could not be ended",) if count else ()


def _find_marked(mark: bytes) -> Iterator[int]:
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    for pid in (int(name) for name in names if name.isdigit()):
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environ:
            if pid != os.getpid() and mark in environ.read().split(b"\0"):
                yield pid


def kill(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_group(pid: int, number: int) -> None:
    """Send a signal to a process group that may be gone."""
    if pid:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)


@cache
def _load_prctl() -> Callable[..., Any] | None:
    """Load prctl once, before any child: loading it takes longer than a fork."""
    if sys.platform != "linux":
        return None
    import ctypes

    return ctypes.CDLL(None).prctl


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Make the kernel signal this process when its parent ends; 0 turns that off."""
    _call_prctl(_PR_SET_PDEATHSIG, int(number))


def keep_orphans() -> None:
    """Make this process adopt its orphaned descendants."""
    _call_prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _call_prctl(option: int, value: int) -> None:
    prctl = _load_prctl()
    if prctl is not None:
        prctl(option, value, 0, 0, 0)
