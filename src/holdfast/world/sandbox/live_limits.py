"""Limits the processes of a sandbox at runtime."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import time
from collections.abc import Callable, Container, Iterable

from holdfast.errors import HarnessError
from holdfast.model.world import Resources
from holdfast.processes.program import KILL_S, MemoryEnd, is_killed_by
from holdfast.world.sandbox.limits import ControlGroup, find_parents, iterate_processes

NO_GROUP = "Holdfast cannot create control groups here, so CPU time is not limited: that needs root or delegated groups"

MIN_MEMORY = 64_000_000
"""Address space that a Holdfast process inside needs; the programs it starts inherit its limit."""
_PAUSE_S = 0.01

ListProcesses = Callable[[], Iterable[int]]


class LiveLimits:
    """Limits that are set while a sandbox is open, and lifted when its agent has ended."""

    def __init__(
        self,
        group: ControlGroup,
        resources: Resources,
        list_processes: ListProcesses,
        kill: Callable[[], object],
        protected: Callable[[], Container[int]] = set,
    ) -> None:
        """`resources` are the usual limits; `list_processes` returns the processes that they apply to.

        `kill` ends programs that use more memory than a new limit. `protected` are processes that must outlive the
        agent, so they never enter its group.
        """
        self._group = group
        self._kill = kill
        self._protected = protected
        self._usual: dict[str, float | None] = {"memory": resources.memory, "cpu": resources.cpu}
        self._list_processes = list_processes
        self._now: dict[str, float] = {}
        self._ended = 0
        """How many programs were killed because they exceeded the memory limit."""

    async def limit(self, memory: int | None, cpu: float | None) -> None:
        """Set limits; raise HarnessError if this machine cannot."""
        self._now |= {name: limit for name, limit in (("memory", memory), ("cpu", cpu)) if limit is not None}
        await self.reapply()

    async def reapply(self) -> None:
        """Apply the same limits to programs that have started since."""
        can = find_parents() if self._now else {}
        if "cpu" in self._now and "cpu" not in can:
            raise HarnessError(NO_GROUP, code="limits-failed")
        for controller, limit in self._now.items():
            if controller in can:
                await self._limit_group(controller, limit)
            else:
                _limit_each(int(limit), self._list_processes)

    def count_hits(self, controller: str) -> int | None:
        """Return how often the limit was hit so far; None if that is not counted."""
        counted = self._group.count_hits(controller)
        return counted if counted is None or controller != "memory" else counted + self._ended

    def make_memory_end(self) -> MemoryEnd:
        """Return a function for a program that starts now; called at its end, it says whether memory was the cause."""
        killed, ended = self._group.count_memory_kills(), self._ended

        def describe_end(status: int | None, by_us: bool) -> str:
            if not is_killed_by(status, signal.SIGKILL):
                return ""
            out = self._ended > ended if by_us else self._group.count_memory_kills() > killed
            usual, now = self._usual["memory"], self._now.get("memory")
            size, source = (usual, "resources.memory") if now is None else (now, "a fault")
            return f"used more than its {format_size(int(size or 0))} of memory ({source})" if out else ""

        return describe_end

    def lift(self) -> None:
        """Restore the usual limits, so that neither they nor cached files of the agent affect checks."""
        can = find_parents() if self._now else {}
        with contextlib.suppress(OSError):
            for controller in self._now:
                if controller in can:
                    self._group.limit(controller, self._usual[controller], self._list_limited)
                else:
                    _limit_each(None, self._list_processes)
            # Pages of files that the agent wrote count as used memory and stay charged to the group. Checks get the
            # usual limit on top of them.
            if (memory := self._usual["memory"]) is not None and (memory_in_use := self._group.measure_memory()):
                self._group.limit("memory", memory + memory_in_use, tuple)
        self._now.clear()

    async def _limit_group(self, controller: str, limit: float) -> None:
        until = time.monotonic() + KILL_S
        try:
            while not self._group.limit(controller, limit, self._list_limited):
                if time.monotonic() > until:
                    raise HarnessError(
                        "memory could not be limited: more is already in use and was not freed", code="limits-failed"
                    )
                self._kill()
                self._ended += 1
                await asyncio.sleep(_PAUSE_S)
        except (OSError, KeyError) as refused:
            raise HarnessError(f"{controller} could not be limited: {refused}", code="limits-failed") from refused

    def _list_limited(self) -> Iterable[int]:
        protected = self._protected()
        return (pid for pid in self._list_processes() if pid not in protected)


def format_size(size: int) -> str:
    """Return a number of bytes as a spec writes it, such as 64Mi."""
    units = ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
    return next((f"{size // unit}{name}" for unit, name in units if size and size % unit == 0), f"{size} bytes")


def _limit_each(size: int | None, list_processes: ListProcesses) -> None:
    """Limit the address space of each process, which its children inherit; None restores the original limit."""
    if size is not None and size < MIN_MEMORY:
        raise HarnessError(
            f"Holdfast cannot create control groups here, and a single process needs at least {MIN_MEMORY} bytes",
            code="limits-failed",
        )
    for pid in iterate_processes(list_processes):
        try:
            most = resource.prlimit(pid, resource.RLIMIT_AS)[1]
            resource.prlimit(pid, resource.RLIMIT_AS, (most if size is None else size, most))
        except ProcessLookupError:
            continue
        except OSError as refused:
            text = f"the memory of its processes cannot be limited: {refused}"
            raise HarnessError(text, code="limits-failed") from refused
