"""The bubblewrap backend: needs no root, and drops it. It reports what the machine cannot enforce."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from holdfast.errors import HarnessError, SandboxFailed, UserError
from holdfast.model.world import Isolation, SandboxTraits
from holdfast.processes.launcher import spawn_own_program
from holdfast.processes.leftovers import kill_group
from holdfast.processes.program import KILL_S
from holdfast.protocols.sandbox import CommandEnd, SandboxSpec
from holdfast.world.sandbox import isolation, kernel, limits, system
from holdfast.world.sandbox.bubblewrap_sandbox import BubblewrapSandbox
from holdfast.world.sandbox.mounts import SOURCES
from holdfast.world.sandbox.workspace import make_unavailable_error, open_sandbox
from holdfast.world.supervisors import messages as wire
from holdfast.world.supervisors.connection import SupervisorConnection
from holdfast.world.supervisors.messages import WORKSPACE, SandboxLayout, find_sandbox_user

_SETTINGS = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ("user/max_net_namespaces", "0", "user.max_net_namespaces=15000"),
)
"""A kernel setting that can forbid user namespaces, the value that does, and the setting that allows them."""
PROCESS_LIMIT = 4096
"""Process limit of a sandbox if the spec sets none, against fork bombs."""
DISK_LIMIT = min(8 << 30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4)
"""Bytes that a sandbox may write if the spec sets no limit: they are in memory, and several trials run concurrently."""
_PROBE = "/bin/sh"


def explain_refusal(refusal: str, settings: Path = Path("/proc/sys")) -> UserError:
    """Return the error for a machine that refuses a sandbox; Holdfast never falls back to a weaker one silently."""
    for name, forbids, allow in _SETTINGS:
        if _read_setting(settings / name) == forbids:
            return make_unavailable_error("namespaces-forbidden", why=refusal, setting=allow)
    return make_unavailable_error("sandbox-refused", why=refusal)


def _read_setting(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


class Bubblewrap:
    """Opens sandboxes through one host. Close it after use."""

    name = "bubblewrap"

    traits: ClassVar[SandboxTraits] = SandboxTraits()

    @classmethod
    async def open_backend(cls, folder: Path, image: str | None = None) -> Bubblewrap:
        """Open the backend and test it on this machine; raise UserError with the command that fixes the problem.

        It has no images: a sandbox shows this machine's own system.
        """
        bwrap = wire.find_bwrap()
        if bwrap is None:
            raise make_unavailable_error("bubblewrap-missing")
        backend = cls(folder, bwrap)
        try:
            await backend.probe()
        except BaseException:
            with contextlib.suppress(HarnessError):
                await asyncio.shield(backend.close())
            raise
        return backend

    def __init__(self, folder: Path, bwrap: Path) -> None:
        self._folder = folder
        self._uid, self._gid = find_sandbox_user()
        self._bwrap = bwrap
        self._mapping = -1
        self._host = self._start_host()
        self._interpreters = system.list_interpreters()
        self._links = system.list_interpreter_links()
        self.isolation: tuple[Isolation, ...] = ()

    async def probe(self) -> None:
        """Open a sandbox and run a command in it; raise UserError with the command that fixes the problem."""
        limits.sweep()
        ends: list[CommandEnd] = []
        # Opening a sandbox is not enough: some machines allow the namespaces and refuse the mounts or the exec. The
        # exit code 42 cannot come from a shell that failed to start.
        sandbox_spec = SandboxSpec("probe", commands=(lambda _: ends.append) if kernel.can_filter() else None)
        try:
            sandbox = await self.open(sandbox_spec)
            try:
                ran = await sandbox.run([_PROBE, "-c", "exit 42"], {"PATH": "/usr/bin:/bin"}, timeout_s=20)
                await sandbox.freeze()
            finally:
                await sandbox.close()
        except (HarnessError, OSError) as refused:
            raise explain_refusal(str(refused)) from refused
        if ran.exit_code != 42:
            raise explain_refusal(f"a command in it gave {ran.exit_code}: {ran.stderr.decode('utf-8', 'replace')}")
        self.isolation = isolation.list_machine_isolation(commands=[end.exit_code for end in ends] == [42])

    async def open(self, sandbox_spec: SandboxSpec) -> BubblewrapSandbox:
        if not self._host.alive:  # something killed the host: only the trials it held are lost
            await self.close()
            self._host = self._start_host()
        sources = Sources(self._uid, self._gid, self._mapping, self._folder)
        # An empty group first: if a later step fails, the same cleanup applies whether or not groups were made.
        group = limits.ControlGroup({})
        try:
            settings = limits.build_settings(sandbox_spec.resources)
            counted = limits.find_parents() if sandbox_spec.limits else ()
            group = limits.ControlGroup({**{name: {} for name in counted}, **settings})
            enforced = isolation.list_sandbox_isolation(
                self.isolation, sandbox_spec.resources, PROCESS_LIMIT, disk=DISK_LIMIT, nested=sandbox_spec.nested
            )
            sandbox = BubblewrapSandbox(sandbox_spec, enforced, group, sources.copies)
            layout = self._build_layout(sandbox_spec, sources, in_group="memory" in settings)
            sandbox.programs.line = self._send_layout(layout, sources, group, sandbox)
        except BaseException:
            await group.close()
            raise
        finally:
            sources.close()
        return await open_sandbox(sandbox)

    def _send_layout(
        self, layout: SandboxLayout, sources: Sources, group: limits.ControlGroup, sandbox: BubblewrapSandbox
    ) -> SupervisorConnection:
        entrances = group.open_entrances()
        try:
            layout = replace(layout, groups=len(entrances))
            return self._host.send_order(
                layout, [*sources.trees, *entrances], sandbox.handle_notice, sandbox.programs.end_all
            )
        finally:
            for entrance in entrances:
                os.close(entrance)

    def _start_host(self) -> HostProcess:
        host = HostProcess(self._uid, self._gid)
        self._mapping = host.receive_owner_mapping()
        return host

    async def close(self) -> None:
        await self._host.close()
        if self._mapping >= 0:
            os.close(self._mapping)
            self._mapping = -1

    def _build_layout(self, sandbox_spec: SandboxSpec, sources: Sources, *, in_group: bool) -> SandboxLayout:
        layers = tuple(sources.add(layer, writable=True) for layer in sandbox_spec.layers)
        visible_paths = {**self._interpreters, **sandbox_spec.visible}
        for path in visible_paths:
            if path == WORKSPACE or path.startswith(f"{WORKSPACE}/"):
                raise make_unavailable_error("workspace-hides", path=path, workspace=WORKSPACE)
        visible = {inside: sources.add(path) for inside, path in visible_paths.items()}
        home = -1 if sandbox_spec.home is None else sources.add(sandbox_spec.home, writable=True)
        bwrap = self._find_executable(sources)
        return SandboxLayout(
            sources=tuple(sources.paths),
            folders=tuple(sources.folders),
            layers=layers,
            home=home,
            listen=tuple(sandbox_spec.listen),
            visible=visible,
            files=system.build_own_files(sandbox_spec.hosts),
            links={**self._links, **sandbox_spec.links},
            nested=sandbox_spec.nested,
            bwrap=bwrap,
            disk=sandbox_spec.resources.disk or DISK_LIMIT,
            pids=sandbox_spec.resources.pids or PROCESS_LIMIT,
            memory=None if in_group else sandbox_spec.resources.memory,
            commands=sandbox_spec.commands is not None and kernel.can_filter(),
            watched=sandbox_spec.watched if kernel.can_filter() else (),
        )

    def _find_executable(self, sources: Sources) -> str:
        """Return where a supervisor finds bubblewrap, with its bundled libraries if it is not the system's."""
        if system.is_in_system(str(self._bwrap)):
            return str(self._bwrap)
        packages = self._bwrap.parents[2]
        return f"{SOURCES}/{sources.add(packages)}/{self._bwrap.relative_to(packages)}"


class HostProcess:
    """The host process of one backend. Close it after use."""

    def __init__(self, uid: int, gid: int) -> None:
        self._control, theirs = wire.make_pair()
        self._control.settimeout(KILL_S)
        try:
            self._process = spawn_own_program(
                "holdfast.world.sandbox.host", theirs.fileno(), str(uid), str(gid), env={}
            )
        except OSError as broken:
            self._control.close()
            raise SandboxFailed(f"the sandbox host could not be started: {broken}") from broken
        finally:
            theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def receive_owner_mapping(self) -> int:
        """Receive the descriptor that maps file owners, which a root host sends first; -1 if there is none."""
        message = wire.receive(self._control)
        if message is None:
            raise SandboxFailed("the sandbox host ended immediately")
        return message.fds[0] if message.fds else -1

    def send_order(
        self,
        layout: SandboxLayout,
        fds: Sequence[int],
        notice: Callable[[wire.SupervisorMessage], None],
        lost: Callable[[], None],
    ) -> SupervisorConnection:
        """Hand a layout to the next supervisor; raise HarnessError if the host is gone."""
        ours, theirs = wire.make_pair()
        written = wire.write_order(layout)
        try:
            wire.send(self._control, wire.START, 0, fds=[theirs.fileno(), written, *fds])
        except OSError as broken:
            ours.close()
            raise SandboxFailed("the sandbox host is gone") from broken
        finally:
            theirs.close()
            os.close(written)
        return SupervisorConnection(ours, notice, lost)

    async def close(self) -> None:
        """End the host and all its supervisors."""
        self._control.close()
        try:
            await asyncio.to_thread(self._process.wait, KILL_S)
        except subprocess.TimeoutExpired:
            kill_group(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Sources:
    """The mount sources of one sandbox, in order. Close it once they are handed over.

    Without root, a source is its path. As root it is a detached mount, reachable without permissions on its parent
    folders. Root's files belong to the sandbox's user there, so the agent can change its copy of them.
    """

    def __init__(self, uid: int, gid: int, mapping: int, folder: Path) -> None:
        self._owner = uid, gid
        self._mapping = mapping
        """A user namespace that maps root's files to that user; -1 if there is none."""
        self._folder = folder
        self.paths: list[str | None] = []
        self.folders: list[bool] = []
        self.trees: list[int] = []
        self.copies: list[Path] = []
        """Copies to remove when the sandbox is closed."""

    def add(self, path: Path, *, writable: bool = False) -> int:
        """Add a source and return its number; `writable` means that the user must own its files."""
        try:
            real = path.resolve(strict=True)
            self.folders.append(real.is_dir())
            if os.getuid() == 0:
                self.trees.append(self._open_tree(real, writable))
                self.paths.append(None)
            else:
                self.paths.append(str(real))
        except OSError as broken:
            raise SandboxFailed(f"{path} cannot be put into the sandbox: {broken.strerror or broken}") from broken
        return len(self.paths) - 1

    def close(self) -> None:
        for tree in self.trees:
            os.close(tree)
        self.trees.clear()

    def _open_tree(self, path: Path, writable: bool) -> int:
        # Three ways, cheapest first: an id-mapped mount shows root's files as the sandbox user's without copying; files
        # that already belong to that user are mounted as they are; everything else that must be writable is copied.
        owner = path.stat().st_uid
        if owner == 0 and self._mapping >= 0:
            tree = kernel.clone_tree(str(path))
            try:
                kernel.change_owner(tree, self._mapping)
            except OSError:  # not supported on this file system
                os.close(tree)
            else:
                return tree
        return kernel.clone_tree(str(self._copy(path) if writable and owner != self._owner[0] else path))

    def _copy(self, path: Path) -> Path:
        copy = self._folder / f"source-{os.urandom(6).hex()}"
        self.copies.append(copy)
        shutil.copytree(path, copy, symlinks=True)
        wire.change_tree_owner(copy, *self._owner)
        return copy
