"""Memory and CPU limits of a complete sandbox, by control groups if the machine allows them; also at runtime."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import signal
import time
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path

from holdfast.errors import HarnessError
from holdfast.model.world import Resources
from holdfast.processes.program import KILL_S, MemoryEnd, is_killed_by

PREFIX = "holdfast-"
"""The name prefix of every group, to find those that a killed run left."""
_PERIOD_US = 100_000
_PAUSE_S = 0.002
_MOUNTS = Path("/proc/self/mountinfo")
_OWN = Path("/proc/self/cgroup")

_COUNTS = {
    ("memory", "hits"): (("memory.failcnt", ""), ("memory.events", "max ")),
    ("memory", "kills"): (("memory.oom_control", "oom_kill "), ("memory.events", "oom_kill ")),
    ("memory", "use"): (("memory.usage_in_bytes", ""), ("memory.current", "")),
    ("cpu", "hits"): (("cpu.stat", "nr_throttled "), ("cpu.stat", "nr_throttled ")),
}
"""The file of each count and the start of its line, in version 1 and 2."""


class ControlGroup:
    """The control groups of one sandbox, one per controller. Close it once the sandbox is empty."""

    def __init__(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        """`settings` holds the values to write, by controller and file."""
        self._folders: dict[str, Path] = {}
        self._name = f"{PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        try:
            for controller, values in settings.items():
                self._write(self._make(controller), values)
        except (OSError, KeyError) as broken:
            self._remove()
            raise HarnessError(
                f"the limits of the sandbox could not be set: {broken}", code="limits-failed"
            ) from broken

    def open_entrances(self) -> list[int]:
        """Open descriptors through which an unprivileged process can enter the groups; the caller closes them."""
        return [os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC) for folder in self._folders.values()]

    def limit(self, controller: str, limit: float | None, list_processes: Callable[[], Iterable[int]]) -> bool:
        """Set or lift a limit at runtime; return False if the programs already use more memory than that.

        Raises OSError or KeyError if the machine cannot. `list_processes` returns the processes to limit.
        """
        folder = self._folders.get(controller) or self._make(controller)
        # Processes move first: a limit on an empty group affects nobody, and moving a process does not move the memory
        # it already uses, which the kernel then charges to its old group.
        for pid in iterate_processes(list_processes):
            with contextlib.suppress(ProcessLookupError):
                (folder / "cgroup.procs").write_text(str(pid))
        try:
            self._write(folder, dict(_list_settings(controller, limit, unified=_is_unified(folder))))
        except OSError as refused:
            # The kernel refuses a memory limit below what the group uses with EBUSY.
            if refused.errno != errno.EBUSY:
                raise
            return False
        return True

    def count_hits(self, controller: str) -> int | None:
        """Return how often the limit was hit, by the kernel's count; None if there is no such group or count."""
        return self._read_count(controller, "hits")

    def count_memory_kills(self) -> int:
        """Return how many processes the kernel killed because together they exceeded the memory limit."""
        return self._read_count("memory", "kills") or 0

    def measure_memory(self) -> int:
        """Return the number of bytes in use, including cached files."""
        return self._read_count("memory", "use") or 0

    def _read_count(self, controller: str, what: str) -> int | None:
        folder = self._folders.get(controller)
        if folder is None:
            return None
        file, name = _COUNTS[controller, what][_is_unified(folder)]
        counts = [line.removeprefix(name) for line in _read_lines(folder / file) if line.startswith(name)]
        return int(counts[0]) if counts and counts[0].isdigit() else None

    async def close(self) -> None:
        """Remove the groups. Waits for the last process, as the supervisor closes its line slightly before it ends."""
        until = time.monotonic() + KILL_S
        while not self._remove():
            if time.monotonic() > until:
                raise HarnessError(
                    "the limits of a sandbox could not be lifted: its processes do not end", code="limits-failed"
                )
            await asyncio.sleep(_PAUSE_S)

    def _make(self, controller: str) -> Path:
        folder = find_parents()[controller] / self._name
        # Where both controllers share a hierarchy they share a folder, and the second one finds it made.
        folder.mkdir(exist_ok=folder in self._folders.values())
        self._folders[controller] = folder
        return folder

    def _write(self, folder: Path, settings: Mapping[str, str]) -> None:
        for file, value in settings.items():
            (folder / file).write_text(value)

    def _remove(self) -> bool:
        for controller, folder in [*self._folders.items()]:
            with contextlib.suppress(OSError):
                if folder.exists():
                    folder.rmdir()
                del self._folders[controller]
        return not self._folders


def iterate_processes(list_processes: Callable[[], Iterable[int]]) -> Iterator[int]:
    """Yield all processes, including those that start meanwhile; the caller limits each before it takes the next."""
    # Children inherit the limit of their parent, so only those that were forked before their parent got it are missed.
    # Each round finds them, until one finds nobody new.
    done: set[int] = set()
    while new := set(list_processes()) - done:
        yield from sorted(new)
        done |= new


def build_settings(resources: Resources) -> dict[str, dict[str, str]]:
    """Return the values to write for these limits, as far as the machine supports them."""
    values: dict[str, dict[str, str]] = {}
    for controller, limit in (("memory", resources.memory), ("cpu", resources.cpu)):
        if limit is not None and (folder := find_parents().get(controller)) is not None:
            values[controller] = dict(_list_settings(controller, limit, unified=_is_unified(folder)))
    return values


def find_parents() -> dict[str, Path]:
    """Return Holdfast's own control group by controller, where groups can be created below it."""
    own = _read_own_groups()
    groups: dict[str, Path] = {}
    # Both versions may be mounted together: each controller is then in exactly one of them. In version 2 a controller
    # can be used only if the parent group delegates it.
    for mounted, kind, controllers in _list_hierarchies():
        for controller in ("memory", "cpu"):
            if kind == "cgroup" and controller in controllers:
                folder = mounted / own.get(controller, "").lstrip("/")
            elif kind == "cgroup2" and controller in _read_delegated(mounted / own.get("", "").lstrip("/")):
                folder = mounted / own.get("", "").lstrip("/")
            else:
                continue
            if os.access(folder, os.W_OK):
                groups.setdefault(controller, folder)
    return groups


def sweep() -> tuple[str, ...]:
    """Remove the groups of killed runs and return their names."""
    removed = []
    for parent in set(find_parents().values()):
        for folder in parent.glob(f"{PREFIX}*-*"):
            # A group names the process that made it. A reused pid keeps a group of a dead run for longer, which costs
            # nothing.
            pid = folder.name.removeprefix(PREFIX).partition("-")[0]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()  # fails while anything runs in it
                    removed.append(folder.name)
    return tuple(sorted(set(removed)))


def _list_settings(controller: str, limit: float | None, *, unified: bool) -> Iterator[tuple[str, str]]:
    none = "max" if unified else "-1"
    if controller == "memory":
        yield "memory.max" if unified else "memory.limit_in_bytes", none if limit is None else str(int(limit))
        return
    quota = none if limit is None else str(int(limit * _PERIOD_US))
    if unified:
        yield "cpu.max", f"{quota} {_PERIOD_US}"
    else:
        yield "cpu.cfs_period_us", str(_PERIOD_US)
        yield "cpu.cfs_quota_us", quota


def _read_own_groups() -> dict[str, str]:
    """Return Holdfast's control group by controller; the unified hierarchy's is at the empty name."""
    groups: dict[str, str] = {}
    for line in _read_lines(_OWN):
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def _list_hierarchies() -> Iterator[tuple[Path, str, frozenset[str]]]:
    for line in _read_lines(_MOUNTS):
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ")[:3]
        if kind in ("cgroup", "cgroup2"):
            yield Path(before.split(" ")[4]), kind, frozenset(options.split(","))


def _read_delegated(folder: Path) -> set[str]:
    return set(" ".join(_read_lines(folder / "cgroup.subtree_control")).split())


def _is_unified(folder: Path) -> bool:
    return (folder / "cgroup.controllers").exists()


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


NO_GROUP = "Holdfast cannot create control groups here, so CPU time is not limited: that needs root or delegated groups"

MIN_MEMORY = 64_000_000
"""Address space that a Holdfast process inside needs; the programs it starts inherit its limit."""
_RETRY_S = 0.01

ListProcesses = Callable[[], Iterable[int]]


class LiveLimits:
    """Limits that are set while a sandbox is open, and lifted when its agent has ended."""

    def __init__(
        self,
        group: ControlGroup,
        resources: Resources,
        list_processes: ListProcesses,
        kill: Callable[[], Awaitable[object]],
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
                await self._kill()
                self._ended += 1
                await asyncio.sleep(_RETRY_S)
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
