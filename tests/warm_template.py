"""The process that hosts of agents are forked from: it imports what a host imports, and next to nothing else."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import socket
import struct
import sys

CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine())
_CLONE_PARENT = 0x8000


def serve(number: int) -> None:
    """Forks a host for every one that asks; a host's parent is the process that asked."""
    import gc

    import holdfast.agents.python.host

    sys.path.pop(0)
    sys.argv[:] = ["-c"]
    del sys.modules["__main__"].__dict__["warm_template"], sys.modules["warm_template"]
    gc.collect()
    gc.freeze()
    asking = socket.socket(fileno=number)
    asking.sendall(b"r")
    while head := socket.recv_fds(asking, 4, 1):
        if not head[0]:
            return
        size, control = struct.unpack("!I", head[0])[0], head[1][0]
        asked = b""
        while len(asked) < size:
            if not (more := asking.recv(size - len(asked))):
                return
            asked += more
        pid = _fork()
        if pid == 0:
            asking.close()
            _become(control, *json.loads(asked.decode("utf-8", "surrogatepass")))
            holdfast.agents.python.host.main()
            sys.exit(0)
        os.close(control)
        asking.sendall(struct.pack("!i", pid))


def _fork() -> int:
    """As os.fork does, but the new process is a child of our parent."""
    call = ctypes.PyDLL(None, use_errno=True).syscall  # holds the interpreter's lock
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(call(CLONE, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return pid


def _become(control: int, root: str, environ: dict[str, str]) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
    os.set_inheritable(control, True)
    os.setsid()
    os.chdir(root)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv.append(str(control))
