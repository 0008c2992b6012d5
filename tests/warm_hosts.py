"""Hosts of Python agents, forked from a process that has imported what every host imports.

A host takes 70 ms of processor time before it sees the agent, and a thousand tests start one. Where `warm_hosts()` is
at work a host is the same program from its first line on, without the interpreter's start. A host whose environment has
a say in that start is started as ever; so is every host of a `holdfast` command in a process of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

from warm_template import CLONE

_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "TZ")
_SEED = {"PYTHONHASHSEED": "0"}


class WarmHost(subprocess.Popen[bytes]):
    """A child of this process that another one has forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.args = ["warm host"]
        self.returncode = None
        self.stdin = self.stdout = self.stderr = None
        self._child_created = True
        self._waitpid_lock = threading.Lock()


@contextmanager
def warm_hosts() -> Iterator[None]:
    """Hosts that this process starts are forked, while the body runs."""
    from holdfast.agents.python import python_host

    if sys.platform != "linux" or CLONE is None:
        yield
        return
    if not _templates:
        _templates.append(WarmTemplate(python_host._spawn))
    with patch.object(python_host, "_spawn", _templates[0].spawn):
        yield


class WarmTemplate:
    """The process that has imported, started once a test process."""

    def __init__(self, cold: Callable[[int, str, Mapping[str, str]], subprocess.Popen[bytes]]) -> None:
        self._cold = cold
        self._owner = os.getpid()
        environ = {**os.environ, **_SEED}
        self._at_start = _seen_at_start(environ)
        self._asking, theirs = socket.socketpair()
        folder = os.path.dirname(os.path.abspath(__file__))
        program = (
            f"import sys; sys.path.insert(0, {folder!r}); import warm_template; warm_template.serve({theirs.fileno()})"
        )
        command = [sys.executable, "-P", "-c", program]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environ, start_new_session=True)
        theirs.close()
        assert self._asking.recv(1) == b"r"
        self._one_at_a_time = threading.Lock()
        atexit.register(self._end)

    def spawn(self, control: int, root: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """In the place of `python_host._spawn`."""
        if _seen_at_start(environ) != self._at_start or os.getpid() != self._owner or not os.path.isdir(root):
            return self._cold(control, root, environ)
        asked = json.dumps([root, dict(environ)]).encode("utf-8", "surrogatepass")
        with self._one_at_a_time:
            socket.send_fds(self._asking, [struct.pack("!I", len(asked))], [control])
            self._asking.sendall(asked)
            (pid,) = struct.unpack("!i", self._asking.recv(4))
        return WarmHost(pid) if pid > 0 else self._cold(control, root, environ)

    def _end(self) -> None:
        if os.getpid() == self._owner:
            self._asking.close()
            self._process.wait()


_templates: list[WarmTemplate] = []


def _seen_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(_AT_START)}
