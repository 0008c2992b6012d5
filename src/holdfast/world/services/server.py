"""A server process of one trial: starts it, waits for it, ends it. It ends with Holdfast in any case.

Inside, a shell unpacks the prepared data, reports that, and waits for a go-ahead before it becomes the server. Without
confinement, a Python program does the same. By then the kernel is set to kill it with Holdfast; if Holdfast ended
earlier, the go-ahead never arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from holdfast.errors import ServiceFailed
from holdfast.processes import scratch
from holdfast.processes.leftovers import GRACE_S, kill_group
from holdfast.world.services.confinement import DATA, SOCKETS, User, build_user_options, change_owner, find_confinement
from holdfast.world.services.log import ServerLog

START_S = 30.0
"""Seconds for a server to accept connections: long, because a busy machine may be slow."""
END_S = 10.0
SHELL = "/bin/sh"
_SCRIPT = """umask 077; mkdir -p "$1" && chmod 700 "$1" && cd "$1" || exit
if [ "$2" = unpack ]; then tar -xf - || exit; fi
shift 2; echo >&1; read -r go <&1 || exit; exec "$@" </dev/null >&2"""
_TIED = """import ctypes, os, signal, sys
parent, drop, stop, data, how, *argv = sys.argv[1:]
if drop:
    uid, gid = map(int, drop.split())
    os.setgroups([]); os.setresgid(gid, gid, gid); os.setresuid(uid, uid, uid)
if int(stop) != signal.SIGKILL: signal.signal(int(stop), signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
if sys.platform == "linux": ctypes.CDLL(None).prctl(1, int(stop), 0, 0, 0)
if os.getppid() != int(parent): sys.exit(1)
os.umask(0o077); os.mkdir(data); os.chdir(data)
if how == "unpack" and os.waitpid(os.posix_spawnp("tar", ["tar", "-xf", "-"], os.environ), 0)[1]: sys.exit(1)
os.write(1, b"\\n")
if not os.read(1, 9): sys.exit(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0); os.dup2(2, 1)
try: os.execv(argv[0], argv)
except OSError as refused: sys.exit(f"{argv[0]}: {refused.strerror}")"""
"""Becomes the server's user, ends with its parent, and does what the script does, without a shell.

A signal that is ignored when Holdfast dies would be lost, and the server would continue to run. bash ignores SIGQUIT by
itself, and so does everything that a shell starts with `&`.
"""


class SocketFolder:
    """The folder for the sockets of one service's servers, accessible only to Holdfast and their user.

    Its path is short, because a Unix socket's path has at most 107 characters.
    """

    def __init__(self, user: User | None) -> None:
        self._user = user
        self._numbers = count(1)
        self.path = scratch.make("services", in_memory=True)
        self.path.chmod(0o711)

    def make_socket_folder(self) -> Path:
        """Make a folder that belongs to the servers' user alone."""
        socket_folder = self.path / str(next(self._numbers))
        socket_folder.mkdir(mode=0o700)
        change_owner(socket_folder, self._user)
        return socket_folder

    def close(self) -> None:
        scratch.remove(self.path)


@dataclass(frozen=True)
class Launch:
    """How a kind of server is started."""

    name: str
    argv: Callable[[str, str], list[str]]
    """Builds the command from the folders for its socket and its data, as the server sees them."""
    ready: bytes
    """The log text that shows that it accepts connections."""
    user: User | None
    archive: Path | None = None
    """Its prepared data."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files placed next to its socket, removed when it is ready."""
    env: Mapping[str, str] = field(default_factory=dict)
    visible: tuple[Path, ...] = ()
    """Paths that it must read, in addition to the system's folders."""
    stop: int = signal.SIGKILL
    """The signal that ends an unconfined server immediately and cleanly: PostgreSQL would leave shared memory."""


class Server:
    """One running server."""

    def __init__(self, socket_folder: Path, process: subprocess.Popen[bytes], log: ServerLog, stop: int) -> None:
        self.socket_folder = socket_folder
        """The folder with its socket."""
        self.log = log
        self._process = process
        self._stop_signal = stop

    @property
    def alive(self) -> bool:
        return not self.log.ended

    @property
    def pid(self) -> int:
        """The process whose end ends the server."""
        return self._process.pid

    def end(self) -> None:
        """Remove the socket and end the server; `close` waits for that."""
        # Immediately, and without waiting: whoever closes many servers ends all of them before waiting for one.
        kill_group(self._process.pid, self._stop_signal)
        if self._stop_signal == signal.SIGKILL:  # otherwise its data are next to the socket, and it still uses them
            shutil.rmtree(self.socket_folder, ignore_errors=True)

    async def close(self) -> None:
        """End the server and remove its process, data and socket."""
        self.end()
        try:
            await self._end()
            await asyncio.to_thread(self._process.wait, END_S)
        except (TimeoutError, subprocess.TimeoutExpired) as stuck:
            raise ServiceFailed(f"process {self._process.pid} of a service could not be ended") from stuck
        finally:
            self.log.close()
            shutil.rmtree(self.socket_folder, ignore_errors=True)

    async def _end(self) -> None:
        if self._stop_signal != signal.SIGKILL:
            with contextlib.suppress(TimeoutError):
                await self.log.wait_for_end(GRACE_S)
        kill_group(self._process.pid, signal.SIGKILL)
        await self.log.wait_for_end(END_S)


async def start(launch: Launch, home: SocketFolder, line: Callable[[bytes], None] | None = None) -> Server:
    """Start a server that accepts connections; `line` receives every line of its log."""
    socket_folder = home.make_socket_folder()
    for name, text in launch.files.items():
        (socket_folder / name).write_text(text)
        (socket_folder / name).chmod(0o600)
        change_owner(socket_folder / name, launch.user)
    # The socket is the handshake with the process: it reports that it is tied to Holdfast, and starts the server only
    # after the go-ahead. Without it, Holdfast could be killed in between and leave a server behind.
    ours, theirs = socket.socketpair()
    try:
        server = _spawn(launch, socket_folder, theirs, line)
    except OSError as broken:
        ours.close()
        shutil.rmtree(socket_folder, ignore_errors=True)
        raise ServiceFailed(f"service {launch.name}: the server cannot be started: {broken}") from broken
    finally:
        theirs.close()
    try:
        # Closed before the server is: a process that has started and is not tied to Holdfast yet waits for the go-
        # ahead, and ends when it reads the end of the socket instead.
        with ours:
            await _release(server, ours, launch)
    except BaseException:
        await server.close()
        raise
    for name in launch.files:
        (socket_folder / name).unlink(missing_ok=True)
    return server


async def _release(server: Server, word: socket.socket, launch: Launch) -> None:
    """Let the process start the server, and wait until the server accepts connections."""
    loop = asyncio.get_running_loop()
    word.setblocking(False)
    try:
        async with asyncio.timeout(START_S):
            if await loop.sock_recv(word, 1):
                await loop.sock_sendall(word, b"go\n")
                if await server.log.wait_for_text(launch.ready):
                    return
    except TimeoutError:
        why = f"is not ready after {START_S:.0f} s"
    except OSError as broken:
        why = f"ended while it started ({broken})"
    else:
        why = "ended while it started"
    output = server.log.text.strip()[-2000:] or "nothing"
    raise ServiceFailed(f"service {launch.name}: the server {why}. Its log says:\n{output}")


def _spawn(launch: Launch, socket_folder: Path, word: socket.socket, line: Callable[[bytes], None] | None) -> Server:
    read, write = os.pipe()
    if launch.user is not None:
        os.fchown(write, launch.user.uid, launch.user.gid)  # MariaDB opens its log by name
    try:
        with open(launch.archive or os.devnull, "rb") as archive:
            process = _start_process(launch, socket_folder, (archive.fileno(), word.fileno(), write))
    except OSError:
        os.close(read)
        raise
    finally:
        os.close(write)
    stop = signal.SIGKILL if find_confinement(launch.user)[0] else launch.stop
    return Server(socket_folder, process, ServerLog(read, line), stop)


def _start_process(launch: Launch, socket_folder: Path, stdio: tuple[int, int, int]) -> subprocess.Popen[bytes]:
    """Start the process confined if possible; otherwise only the kernel ties it to Holdfast."""
    confinement, _ = find_confinement(launch.user)
    sockets, data = (SOCKETS, f"{DATA}/files") if confinement else (str(socket_folder), str(socket_folder / "data"))
    begins = [data, "unpack" if launch.archive else "empty", *launch.argv(sockets, data)]
    env = {"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC", **launch.env}
    if confinement is None:
        drop = f"{launch.user.uid} {launch.user.gid}" if launch.user else ""
        tied = [_TIED, str(os.getpid()), drop, str(int(launch.stop))]
        argv, user_options = [sys.executable, "-I", "-S", "-c", *tied, *begins], {}
    else:
        script = [SHELL, "-c", _SCRIPT, "sh", *begins]
        argv = confinement.wrap_command(script, {SOCKETS: socket_folder}, {str(path): path for path in launch.visible})
        user_options = build_user_options(launch.user)
    stdin, word, log = stdio
    return subprocess.Popen(  # noqa: S603
        argv, stdin=stdin, stdout=word, stderr=log, env=env, start_new_session=True, cwd="/", **user_options
    )
