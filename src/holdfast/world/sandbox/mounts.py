"""The mounts of one sandbox, made in its supervisor's mount namespace: they vanish with it. Standard library only.

No mount is visible on the host. In that namespace a new file system covers `/sys`, which every machine has and neither
a supervisor nor bubblewrap needs. The complete tree that programs see is built here, once: bubblewrap takes it as it
is, which is three times as fast as building it for every program.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.world.sandbox import kernel
from holdfast.world.sandbox.system import System
from holdfast.world.supervisors.messages import HOME, WORKSPACE, SandboxLayout

TOP = "/sys"
SOURCES, ROOT, DISK, VIEW, BEFORE = f"{TOP}/src", f"{TOP}/root", f"{TOP}/disk", f"{TOP}/view", f"{TOP}/before"
HOME_VIEW = f"{TOP}/home"
_EMPTY, _NOTHING, _THROWAWAY_FOLDER = f"{TOP}/empty", f"{TOP}/nothing", f"{TOP}/aside"
TMP, SHM = "/tmp", "/dev/shm"  # noqa: S108  # as programs see them
_OTHER_TMP = "/var/tmp"  # noqa: S108
_WRITTEN = (f"{TMP}/", f"{SHM}/", f"{HOME}/")
_OWN_TMP, _OWN_SHM, _OWN_HOME = f"{DISK}/t", f"{DISK}/s", f"{DISK}/h"
_DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/ptmx": "pts/ptmx",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    _OTHER_TMP: "../tmp",
}
_FOLDERS = ("/dev/pts", SHM, "/proc", "/run", TMP, WORKSPACE, HOME)
_INODES = 1_000_000
"""Maximum number of files of an agent: each costs about a kilobyte of kernel memory."""
_LEAST_INODES = 16_384
_PLAIN = kernel.NOSUID | kernel.NODEV


@dataclass(frozen=True)
class WritableLayer:
    """The folders that programs write to: the workspace, their home, /tmp and /dev/shm."""

    workspace: str
    home: str
    tmp: str
    shm: str
    visible: tuple[str, ...] = ()
    """Paths below /tmp, /dev/shm or the home that stay visible, such as a Python installed there."""


class SandboxMounts:
    """The file systems of one sandbox. `layer` is where programs work; changes count from the last `snapshot`."""

    def __init__(self, system: System) -> None:
        """Make everything that is the same for every sandbox, ahead of the first order."""
        # A slave of the host's mounts: what the host unmounts disappears here, too, and nothing mounted here is visible
        # on the host. TOP must be a new file system, because everything below it is made as an unprivileged user.
        kernel.unshare(kernel.NEWNS)
        kernel.mount("none", "/", flags=kernel.REC | kernel.SLAVE)
        kernel.mount("tmpfs", TOP, "tmpfs", _PLAIN, "mode=0755,size=64m")
        for folder in (SOURCES, ROOT, DISK, VIEW, HOME_VIEW, BEFORE, _EMPTY, _NOTHING, _THROWAWAY_FOLDER):
            os.mkdir(folder)
        _build(system)
        self._size = ""
        self._lower: list[str] = []
        """The lower layers, topmost first, as overlayfs expects them."""
        self._uppers = 0
        self._throwaways = 0
        self._visible_again: tuple[str, ...] = ()
        self._home: list[str] = [_OWN_HOME]
        """The layers of the home, topmost first."""
        self.upper = ""

    def mount_layout(self, layout: SandboxLayout, trees: tuple[int, ...]) -> int:
        """Add what belongs to this sandbox only; return a read-only view of its workspace."""
        self._size = f"mode=0755,size={layout.disk},nr_inodes={min(_INODES, max(_LEAST_INODES, layout.disk // 1024))}"
        self._lower = [f"{SOURCES}/{n}" for n in reversed(layout.layers)]
        # The order matters. Sources first, since visible paths are bound from them. Then the tree is sealed read-only,
        # and only after that do the writable folders go on top of it, as mounts of their own that the seal does not
        # cover.
        _mount_sources(layout, trees)
        _add_files(layout)
        kernel.seal(ROOT)
        kernel.mount("tmpfs", DISK, "tmpfs", _PLAIN, self._size)
        for folder, inside in ((_OWN_TMP, TMP), (_OWN_SHM, SHM)):
            os.mkdir(folder)
            os.chmod(folder, 0o1777)  # noqa: S103  # as everywhere
            _bind(folder, f"{ROOT}{inside}")
        self._mount_home(layout.home)
        self._mount_again(layout)
        return self.snapshot()

    def _mount_home(self, source: int) -> None:
        """Make the home a folder on the sandbox's disk, above its initial content."""
        if source < 0:
            os.mkdir(_OWN_HOME)
        else:
            # The initial content stays a lower layer: filling the home would copy it for every trial.
            self._home = [f"{DISK}/up-home", f"{SOURCES}/{source}"]
            _mount_overlay(self._home[1:], self._home[0], f"{DISK}/work-home", _OWN_HOME)
        _bind(_OWN_HOME, f"{ROOT}{HOME}")

    def open_home_view(self) -> int:
        """Return a read-only view of the home."""
        _bind(_OWN_HOME, HOME_VIEW)
        kernel.seal(HOME_VIEW, links=False)
        return os.open(HOME_VIEW, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def _mount_again(self, layout: SandboxLayout) -> None:
        """Mount paths below /tmp, /dev/shm and the home again, as the sandbox's own folders hide them."""
        sources = {_replace_tmp_link(path): f"{SOURCES}/{n}" for path, n in layout.visible.items()}
        # A Python may be installed below the home or /tmp. The sandbox's own folders there would hide it, so it is
        # mounted on top of them, the parent of two nested paths first.
        self._visible_again = tuple(sorted(path for path in sources if path.startswith(_WRITTEN)))
        for path in self._visible_again:
            os.makedirs(os.path.dirname(f"{ROOT}{path}"), exist_ok=True)
            _make_mount_point(f"{ROOT}{path}", os.path.isdir(sources[path]))
            _show(sources[path], f"{ROOT}{path}")
        _link({path: target for path, target in layout.links.items() if _replace_tmp_link(path).startswith(_WRITTEN)})

    @property
    def layer(self) -> WritableLayer:
        return WritableLayer(f"{DISK}/merged{self._uppers}", _OWN_HOME, _OWN_TMP, _OWN_SHM, self._visible_again)

    def snapshot(self) -> int:
        """Count changes from the current state on; return a new read-only view of the workspace."""
        # The upper layer so far becomes the topmost lower one, and a new, empty upper layer takes what is written from
        # now on: reading the changes is then a walk through that layer alone, however large the workspace is. BEFORE is
        # the workspace without it.
        if self.upper:
            self._lower.insert(0, self.upper)
            for mounted in (VIEW, BEFORE, f"{ROOT}{WORKSPACE}"):
                kernel.unmount(mounted)
        self._uppers += 1
        self.upper = f"{DISK}/up{self._uppers}"
        _mount_overlay(self._lower, self.upper, f"{DISK}/work{self._uppers}", self.layer.workspace)
        kernel.mount("overlay", BEFORE, "overlay", kernel.RDONLY, _format_lowers([*self._lower, _EMPTY, _NOTHING]))
        _bind(self.layer.workspace, f"{ROOT}{WORKSPACE}")
        _bind(self.layer.workspace, VIEW)
        kernel.seal(VIEW, links=False)  # so that no link that an agent made can lead a reader out
        return os.open(VIEW, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def open_throwaway(self) -> tuple[str, WritableLayer]:
        """Return a layer whose changes are discarded, and the key to pass to `forget`."""
        self._throwaways += 1
        throwaway = f"{_THROWAWAY_FOLDER}/{self._throwaways}"
        # The current workspace, home and /tmp become lower layers of new overlays, whose upper layers are on a tmpfs of
        # their own. So a check sees everything the agent left, and what it writes disappears with the tmpfs.
        os.mkdir(throwaway)
        kernel.mount("tmpfs", throwaway, "tmpfs", _PLAIN, self._size)
        os.mkdir(f"{throwaway}/shm")
        merged = f"{throwaway}/merged"
        layer = WritableLayer(merged, f"{merged}-home", f"{merged}-tmp", f"{throwaway}/shm", self._visible_again)
        _mount_overlay([self.upper, *self._lower], f"{throwaway}/up", f"{throwaway}/work", layer.workspace)
        _mount_overlay(self._home, f"{throwaway}/up-home", f"{throwaway}/work-home", layer.home)
        _mount_overlay([self.layer.tmp], f"{throwaway}/up-tmp", f"{throwaway}/work-tmp", layer.tmp)
        return throwaway, layer

    def forget(self, throwaway: str) -> None:
        for mounted in (f"{throwaway}/merged", f"{throwaway}/merged-home", f"{throwaway}/merged-tmp", throwaway):
            kernel.unmount(mounted)
        os.rmdir(throwaway)


def _mount_sources(layout: SandboxLayout, trees: tuple[int, ...]) -> None:
    """Mount the sources where this user can reach them."""
    coming = iter(trees)
    for n, (path, folder) in enumerate(zip(layout.sources, layout.folders, strict=True)):
        target = f"{SOURCES}/{n}"
        _make_mount_point(target, folder)
        if path is None:
            tree = next(coming)
            kernel.place_tree(tree, target)
            os.close(tree)
        else:
            _bind(path, target)


def _build(system: System) -> None:
    """Build the part of the tree that comes from this machine."""
    kernel.mount("tmpfs", ROOT, "tmpfs", _PLAIN, "mode=0755,size=64m")
    for folder in _FOLDERS:
        os.makedirs(f"{ROOT}{folder}")
    # Links and files come after the folders: a link must not redirect a mount, and a file needs its parent.
    for path in system.folders:
        os.makedirs(f"{ROOT}{path}")
        _show(path, f"{ROOT}{path}")
    for path, target in {**system.links, **_LINKS}.items():
        os.makedirs(os.path.dirname(f"{ROOT}{path}"), exist_ok=True)
        os.symlink(target, f"{ROOT}{path}")
    for path, data in system.files.items():
        Path(f"{ROOT}{path}").write_bytes(data)
    for name in (name for name in _DEVICES if os.path.exists(f"/dev/{name}")):  # a container may lack some
        _make_mount_point(f"{ROOT}/dev/{name}", False)
        _bind(f"/dev/{name}", f"{ROOT}/dev/{name}")
    kernel.mount("devpts", f"{ROOT}/dev/pts", "devpts", kernel.NOSUID | kernel.NOEXEC, "newinstance,ptmxmode=0666")


def _add_files(layout: SandboxLayout) -> None:
    """Add what only this sandbox sees."""
    for path, text in layout.files.items():
        Path(f"{ROOT}{path}").write_text(text, encoding="utf-8")
    for inside, n in sorted(layout.visible.items()):  # a folder before its contents
        os.makedirs(os.path.dirname(f"{ROOT}{inside}"), exist_ok=True)
        _make_mount_point(f"{ROOT}{inside}", layout.folders[n])
        _show(f"{SOURCES}/{n}", f"{ROOT}{inside}")
    _link(layout.links)


def _link(links: Mapping[str, str]) -> None:
    """Make links, last, so that no mount is made through one."""
    for path, target in links.items():
        if not os.path.lexists(f"{ROOT}{path}"):
            os.makedirs(os.path.dirname(f"{ROOT}{path}"), exist_ok=True)
            os.symlink(target, f"{ROOT}{path}")


def _replace_tmp_link(path: str) -> str:
    """Return the path inside, without the link that leads to /tmp."""
    return TMP + path.removeprefix(_OTHER_TMP) if path.startswith(f"{_OTHER_TMP}/") else path


def _make_mount_point(target: str, folder: bool) -> None:
    if folder:
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def _bind(source: str, target: str) -> None:
    kernel.mount(source, target, flags=kernel.BIND | kernel.REC)


def _show(source: str, target: str) -> None:
    """Mount read-only immediately: mount points made below it later must not be made on the host."""
    _bind(source, target)
    kernel.seal(target, below=True)


def _mount_overlay(lower: list[str], upper: str, work: str, target: str) -> None:
    for folder in (upper, work, target):
        os.mkdir(folder)
    data = f"{_format_lowers(lower or [_EMPTY])},upperdir={upper},workdir={work}"
    kernel.mount("overlay", target, "overlay", _PLAIN, data)


def _format_lowers(folders: list[str]) -> str:
    return "userxattr,lowerdir=" + ":".join(folders)
