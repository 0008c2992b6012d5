"""A Python that has imported the MCP SDK: it forks for every program, in place of a second of imports each.

`warm_python()` is a command: its process hands arguments, folder, environment and streams to the one that has imported,
and ends as the fork does. A fork whose process is gone is killed.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import struct
import sys

IMPORTED = ("mcp.server.mcpserver",)


def warm_python() -> list[str]:
    """Stands where `python` would, on this machine and below no sandbox; started once a test process."""
    if not _addresses:
        _start()
    return [sys.executable, "-I", "-S", __file__, "run", _addresses[0]]


_addresses: list[str] = []


def _start() -> None:
    import shutil
    import subprocess
    import tempfile

    folder = tempfile.mkdtemp(prefix="warm-")
    address = os.path.join(folder, "s")
    command = [sys.executable, __file__, "serve", address]
    host = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert host.stdin is not None
    assert host.stdout is not None
    assert host.stdout.readline() == b"listening\n"
    host.stdout.close()

    def end() -> None:
        host.stdin.close()  # type: ignore[union-attr]
        host.wait()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    _addresses.append(address)


# -- the process that is started ------------------------------------------------------------------
def _run(address: str, words: list[str]) -> int:
    alive, held = os.pipe()  # the fork sees its end when we are gone
    asked = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX) as host:
        host.connect(address)
        socket.send_fds(host, [struct.pack("!I", len(asked))], [0, 1, 2, alive])
        host.sendall(asked)
        for fd in (0, 1, alive):
            os.close(fd)
        code = host.recv(1)
    os.close(held)
    return code[0] if code else 1


# -- the process that has imported ----------------------------------------------------------------
def _serve(address: str) -> None:
    for name in IMPORTED:
        __import__(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("listening", flush=True)
        while listener in select.select([listener, 0], [], [])[0]:
            client, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                _watch(client)
                os._exit(0)
            client.close()


def _watch(client: socket.socket) -> None:
    """Runs the program in a fork, kills it when its client is gone, and tells how it ended."""
    head, fds, _, _ = socket.recv_fds(client, 4, 4)
    size, asked = struct.unpack("!I", head)[0], b""
    while len(asked) < size:
        asked += client.recv(size - len(asked))
    *streams, alive = fds
    if (pid := os.fork()) == 0:
        client.close()
        os.close(alive)
        _become(streams, *json.loads(asked))
    for fd in (0, *streams):
        os.close(fd)
    ended = os.pidfd_open(pid)
    if ended not in select.select([ended, alive], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    client.sendall(bytes([code if code >= 0 else 128 - code]))


def _become(streams: list[int], words: list[str], folder: str, environ: dict[str, str]) -> None:
    import runpy

    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    code = 0
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(sys.argv[2])
    else:
        sys.exit(_run(sys.argv[2], sys.argv[3:]))
