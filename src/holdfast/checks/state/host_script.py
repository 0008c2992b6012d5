"""Runs a script of the spec's author on this machine: limited in time and memory, and killed if Holdfast ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from holdfast.processes.leftovers import kill_group
from holdfast.processes.pipes import Head, Pipes, Tail
from holdfast.protocols.sandbox import Ran

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BOOT = """
import ctypes, os, runpy, sys
parent = int(sys.argv.pop(1))
try:
    ctypes.CDLL(None).prctl(1, 9)
except (OSError, AttributeError):
    pass
if os.getppid() != parent:
    sys.exit(1)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Asks the kernel to kill the script with Holdfast (PR_SET_PDEATHSIG), then runs it like `python -P script`."""


def clean_environment() -> Mapping[str, str]:
    """Return the environment of a script, without variables of Holdfast or the agent."""
    return {"PATH": _PATH, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}


async def run_script(script: Path, cwd: Path, stdin: bytes, *, timeout_s: float, keep: int) -> Ran:
    """Run a Python script to its end, then kill the processes that it started."""
    out, err = Head(keep), Tail()
    pipes = Pipes(stdin, out, err)
    began = time.monotonic()
    try:
        read, *write = pipes.stdio
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", _BOOT, str(os.getpid()), str(script),
            stdin=read, stdout=write[0], stderr=write[1], cwd=cwd, env=clean_environment(), start_new_session=True,
        )  # fmt: skip
        pipes.close_child_ends()
        in_time = await _wait_in_time(process, timeout_s)
        pipes.drain()
    finally:
        pipes.close()
    took_ms = (time.monotonic() - began) * 1000
    code = process.returncode
    killed = code is not None and code < 0
    return Ran(
        exit_code=None if killed or not in_time else code,
        stdout=out.data,
        stderr=err.text.encode(),
        timed_out=not in_time,
        signal=-code if code is not None and killed and in_time else 0,
        duration_ms=took_ms,
    )


async def _wait_in_time(process: asyncio.subprocess.Process, timeout_s: float) -> bool:
    """Whether it ended by itself in time; its group is killed in any case."""
    try:
        async with asyncio.timeout(timeout_s):
            await process.wait()
    except TimeoutError:
        return False
    finally:
        kill_group(process.pid, signal.SIGKILL)
        await process.wait()
    return True
