"""One program in a sandbox as its supervisor sees it: whether it exists, how bubblewrap starts it, how it ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import posixpath
import signal
import time
from collections.abc import Mapping, Sequence

from holdfast.processes.leftovers import kill, kill_group
from holdfast.world.sandbox.mounts import ROOT, SHM, TMP, WritableLayer
from holdfast.world.sandbox.system import ID
from holdfast.world.supervisors.messages import HOME, WORKSPACE, StartOrder, make_memory_file

_STATUS, _OPTIONS = 3, 4
"""Descriptors of bubblewrap besides stdin, stdout and stderr; the program inherits none of them."""
_LINKS = 40
"""Maximum number of links to follow, as in the kernel."""
_DEFAULT_PATH = "/bin:/usr/bin"
"""The folders that execvp searches without a PATH."""


class ProgramLookup:
    """Maps paths of a sandbox to paths outside; the longest matching prefix wins."""

    def __init__(self, mounts: Mapping[str, str]) -> None:
        self._mounts = mounts

    def find_refusal(self, name: str, path: str | None, cwd: str) -> int:
        """Return the errno that executing it would give; 0 if it can be executed or its place cannot be examined."""
        if "/" in name:
            return self._check_executable(posixpath.join(cwd, name))
        errors = [
            self._check_executable(posixpath.join(cwd, folder or ".", name))
            for folder in (_DEFAULT_PATH if path is None else path).split(":")
        ]
        if 0 in errors or not errors:
            return 0 if errors else errno.ENOENT
        return errno.EACCES if errno.EACCES in errors else errno.ENOENT

    def map_outside(self, path: str) -> str | None:
        """Return the path outside, links followed; None if unknown. Raises OSError if it does not exist."""
        # The mounts exist only inside, so the kernel cannot resolve the path from here. Each link is read at its place
        # outside, and its target is walked again from the top of the tree inside.
        parts = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        at, links = "/", 0
        while parts:
            part = parts.pop()
            at = posixpath.normpath(posixpath.join(at, part))
            target = self._read_link(at)
            if target is None:
                continue
            links += 1
            if links > _LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            at = "/" if target.startswith("/") else posixpath.dirname(at)
            parts += [piece for piece in reversed(target.split("/")) if piece not in ("", ".")]
        return self._map_mount(at)

    def _check_executable(self, path: str) -> int:
        try:
            outside = self.map_outside(path)
            if outside is None:
                return 0
            if not os.path.isfile(outside):
                return errno.EACCES if os.path.exists(outside) else errno.ENOENT
        except OSError as refused:
            return refused.errno or errno.ENOENT
        return 0 if os.stat(outside).st_mode & 0o111 else errno.EACCES

    def _read_link(self, at: str) -> str | None:
        outside = self._map_mount(at)
        if outside is None or at in self._mounts:
            return None
        return os.readlink(outside) if os.path.islink(outside) else None

    def _map_mount(self, at: str) -> str | None:
        if at.startswith("/proc"):
            return None  # only a process inside can tell
        for inside in sorted(self._mounts, key=len, reverse=True):
            if at == inside or at.startswith(inside.rstrip("/") + "/"):
                return self._mounts[inside] + at[len(inside.rstrip("/")) :]
        return None


_ABOVE = 100
"""Descriptors from here on do not collide with others."""
_SIGNALS = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD]
"""Signals that Python changes; a program gets the system's default."""
ALWAYS = (
    "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try "
    f"--die-with-parent --new-session --uid {ID} --gid {ID} --hostname holdfast --cap-drop ALL --clearenv "
    f"--dev-bind {ROOT} / --proc /proc --ro-bind /proc/sys /proc/sys"
).split()


class SandboxedProgram:
    """A running program inside."""

    def __init__(self, ticket: int, pid: int, status_fd: int, throwaway: str) -> None:
        self.ticket = ticket
        self.pid = pid
        """The pid of bubblewrap, outside."""
        self.throwaway = throwaway
        self.killed = False
        self._status_fd = status_fd
        """The pipe on which bubblewrap reports; its messages are small enough to stay there until they are read."""
        self._text = b""
        self._began = time.monotonic_ns()

    @property
    def took_ns(self) -> int:
        return time.monotonic_ns() - self._began

    def signal(self, number: int) -> None:
        """Send a signal to the program's group; SIGKILL goes to everything inside."""
        init = self._read_report("child-pid")
        if number == signal.SIGKILL or init is None:
            self.killed = True
            if init is not None:
                kill(init, signal.SIGKILL)  # the kernel kills everything below it
            kill(self.pid, signal.SIGKILL)
            return
        kill_group(init, number)  # the first process of a pid namespace ignores it, and leads the program's group

    def has_run(self) -> bool:
        """Return whether the program was executed at all; call it after its end."""
        return self.killed or self._read_report("exit-code") is not None

    def close(self) -> None:
        os.close(self._status_fd)

    def _read_report(self, key: str) -> int | None:
        with contextlib.suppress(BlockingIOError):
            self._text += os.read(self._status_fd, 4096)
        documents = [json.loads(line) for line in self._text.splitlines(keepends=True) if line.endswith(b"\n")]
        return next((int(document[key]) for document in documents if key in document), None)


def start(
    bwrap: str,
    order: StartOrder,
    layer: WritableLayer | None,
    stdio: Sequence[int],
    groups: Sequence[int],
    *,
    nested: bool = False,
) -> tuple[int, int]:
    """Start a program in these groups; return bubblewrap's pid and the pipe on which it reports."""
    status_fd, report_fd = os.pipe()
    options = make_memory_file(
        b"".join(os.fsencode(word) + b"\0" for word in build_options(order, layer, nested=nested))
    )
    # The descriptors are first moved above all target numbers: dup2 to 0, 1, 2 … could otherwise overwrite one that is
    # still needed.
    fds = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for fd in (*stdio, report_fd, options)]
    words = ["bwrap", "--args", str(_OPTIONS), "--json-status-fd", str(_STATUS)]
    try:
        argv = [*words, "--", *order.argv]
        pid = _spawn(groups, bwrap, argv, fds)
    except BaseException:
        os.close(status_fd)
        raise
    finally:
        for fd in (report_fd, options, *fds):
            os.close(fd)
    os.set_blocking(status_fd, False)
    return pid, status_fd


def _spawn(groups: Sequence[int], bwrap: str, argv: list[str], fds: Sequence[int]) -> int:
    """Start it inside these control groups. Raises OSError if it cannot enter them or cannot be executed."""
    # posix_spawn cannot enter a control group, so this forks. The close-on-exec pipe tells failure from success: exec
    # closes it without a byte, an error writes its errno.
    failed, low = os.pipe()
    fail = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(low)
    pid = os.fork()
    if pid == 0:
        try:
            # Before exec: a program that starts children immediately must not have any outside the groups.
            for group in groups:
                os.write(group, b"0")  # the process that writes it
            os.setsid()
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            for to, fd in enumerate(fds):
                os.dup2(fd, to)
            os.execve(bwrap, argv, {})  # noqa: S606  # as posix_spawn, which knows no groups
        except OSError as refused:
            os.write(fail, b"%d" % (refused.errno or errno.EIO))
        finally:
            os._exit(127)
    os.close(fail)
    with open(failed, "rb", buffering=0) as failure:
        refusal = failure.read(16)  # nothing: it was executed, which closes the pipe
    if refusal:
        raise OSError(int(refusal), os.strerror(int(refusal)))
    return pid


def build_options(order: StartOrder, layer: WritableLayer | None, *, nested: bool = False) -> list[str]:
    """Return all options of bubblewrap, passed as a file because the environment holds secrets.

    `nested` lets the program create its own user namespaces.
    """
    # The tree was mounted once by the supervisor and is bound as it is. Only a throwaway layer replaces the writable
    # folders in it, and the paths below them that stay visible are bound again on top.
    userns = [] if nested else ["--disable-userns"]
    binds = [word for inside, source in list_replaced_mounts(layer).items() for word in ("--bind", source, inside)]
    for path in layer.visible if layer is not None else ():
        binds += ["--ro-bind", f"{ROOT}{path}", path]
    variables = [word for name, value in order.env.items() for word in ("--setenv", name, value)]
    return [*ALWAYS, *userns, *binds, *variables, "--chdir", order.cwd]


def list_replaced_mounts(layer: WritableLayer | None) -> dict[str, str]:
    """Return the mounts that a throwaway layer replaces; none for the usual layer."""
    if layer is None:
        return {}
    return {WORKSPACE: layer.workspace, HOME: layer.home, TMP: layer.tmp, SHM: layer.shm}
