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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from holdfast.errors import ServiceFailed
from holdfast.model.world import ServiceSpec
from holdfast.processes import scratch
from holdfast.processes.leftovers import GRACE_S, kill_group
from holdfast.processes.program import await_all
from holdfast.world.services.confinement import DATA, SOCKETS, User, build_user_options, change_owner, find_confinement
from holdfast.world.services.log import ServerLog
from holdfast.world.services.programs import ServerProgram, wait_for

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
class ServerSetup:
    """How the servers of one service are started."""

    spec: ServiceSpec
    program: ServerProgram
    user: User | None
    home: SocketFolder
    argv: Callable[[str, str], list[str]]
    """Builds the command from the folders for its socket and its data, as the server sees them."""
    ready: bytes
    """The log text that shows that it accepts connections."""
    address: Callable[[str], Mapping[str, str]] = lambda sockets: {}
    """Builds the variables of `wait_for` from the folder of its socket."""
    notes: tuple[str, ...] = ()
    archive: Path | None = None
    """Its prepared data."""
    password: str = ""
    """The password of Holdfast's own account in the data."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files placed next to its socket, removed when it is ready."""
    env: Mapping[str, str] = field(default_factory=dict)
    stop: int = signal.SIGKILL
    """The signal that ends an unconfined server immediately and cleanly: PostgreSQL would leave shared memory."""
    endings: list[asyncio.Future[None]] = field(default_factory=list)
    """Servers that end in the background after their trials."""

    async def close(self) -> None:
        """Wait until all servers have ended, then remove their folder; raise the first failure."""
        try:
            await await_all(self.endings)
        finally:
            self.home.close()


def set_up(
    spec: ServiceSpec,
    program: ServerProgram,
    user: User | None,
    argv: Callable[[str, str], list[str]],
    ready: bytes,
    address: Callable[[str], Mapping[str, str]],
    notes: Sequence[str] = (),
    **options: Any,
) -> ServerSetup:
    """Make the folder for the servers' sockets, and add the notes that concern every kind."""
    scratch.sweep()
    served = f"{spec.image} is served by" if spec.image else "it is"
    confinement, why = find_confinement(user)
    unconfined = () if confinement else (f"service {spec.name}: its server runs unconfined: {why}",)
    version = f"service {spec.name}: {served} {program.version} of this machine"
    notes = (version, *notes, *unconfined)
    return ServerSetup(spec, program, user, SocketFolder(user), argv, ready, address, notes, **options)


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


async def start(
    setup: ServerSetup,
    line: Callable[[bytes], None] | None = None,
    prepare: Callable[[Server], Awaitable[None]] | None = None,
) -> Server:
    """Start a server that is ready for its trial; `line` receives every line of its log.

    `prepare` is called when it accepts connections, before `wait_for`.
    """
    socket_folder = setup.home.make_socket_folder()
    for name, text in setup.files.items():
        (socket_folder / name).write_text(text)
        (socket_folder / name).chmod(0o600)
        change_owner(socket_folder / name, setup.user)
    # The socket is the handshake with the process: it reports that it is tied to Holdfast, and starts the server only
    # after the go-ahead. Without it, Holdfast could be killed in between and leave a server behind.
    ours, theirs = socket.socketpair()
    try:
        server = _spawn(setup, socket_folder, theirs, line)
    except OSError as broken:
        ours.close()
        shutil.rmtree(socket_folder, ignore_errors=True)
        raise ServiceFailed(f"service {setup.spec.name}: the server cannot be started: {broken}") from broken
    finally:
        theirs.close()
    try:
        # Closed before the server is: a process that has started and is not tied to Holdfast yet waits for the go-
        # ahead, and ends when it reads the end of the socket instead.
        with ours:
            await _release(server, ours, setup)
        for name in setup.files:
            (socket_folder / name).unlink(missing_ok=True)
        if prepare is not None:
            await prepare(server)
        await wait_for(setup.spec, setup.address(str(socket_folder)), setup.user)
    except BaseException:
        await server.close()
        raise
    return server


async def _release(server: Server, word: socket.socket, setup: ServerSetup) -> None:
    """Let the process start the server, and wait until the server accepts connections."""
    loop = asyncio.get_running_loop()
    word.setblocking(False)
    why = "ended while it started"
    try:
        async with asyncio.timeout(START_S):
            if await loop.sock_recv(word, 1):
                await loop.sock_sendall(word, b"go\n")
                if await server.log.wait_for_text(setup.ready):
                    return
    except TimeoutError:
        why = f"is not ready after {START_S:.0f} s"
    except OSError as broken:
        why = f"{why} ({broken})"
    output = server.log.text.strip()[-2000:] or "nothing"
    raise ServiceFailed(f"service {setup.spec.name}: the server {why}. Its log says:\n{output}")


def _spawn(
    setup: ServerSetup, socket_folder: Path, word: socket.socket, line: Callable[[bytes], None] | None
) -> Server:
    """Start the process confined if possible; otherwise only the kernel ties it to Holdfast."""
    confinement, _ = find_confinement(setup.user)
    sockets, data = (SOCKETS, f"{DATA}/files") if confinement else (str(socket_folder), str(socket_folder / "data"))
    begins = [data, "unpack" if setup.archive else "empty", *setup.argv(sockets, data)]
    if confinement is None:
        drop = f"{setup.user.uid} {setup.user.gid}" if setup.user else ""
        argv = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), drop, str(int(setup.stop)), *begins]
    else:
        visible = {str(setup.program.prefix): setup.program.prefix}
        argv = confinement.wrap_command([SHELL, "-c", _SCRIPT, "sh", *begins], {SOCKETS: socket_folder}, visible)
    read, write = os.pipe()
    try:
        if setup.user is not None:
            os.fchown(write, setup.user.uid, setup.user.gid)  # MariaDB opens its log by name
        with open(setup.archive or os.devnull, "rb") as archive:
            process = subprocess.Popen(  # noqa: S603
                argv,
                stdin=archive,
                stdout=word.fileno(),
                stderr=write,
                env={"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC", **setup.env},
                start_new_session=True,
                cwd="/",
                **(build_user_options(setup.user) if confinement else {}),
            )
    except OSError:
        os.close(read)
        raise
    finally:
        os.close(write)
    return Server(socket_folder, process, ServerLog(read, line), signal.SIGKILL if confinement else setup.stop)
