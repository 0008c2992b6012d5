"""Runs a script of the spec's author on this machine: its input, its services, and its limits."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from holdfast.processes.leftovers import kill_group
from holdfast.processes.pipes import Head, Pipes, Tail
from holdfast.protocols.sandbox import CommandResult
from holdfast.protocols.service import Service
from holdfast.protocols.world import World
from holdfast.service_kinds import get_port
from holdfast.streams.connection_listener import Forwarder


class ScriptService(Struct, frozen=True):
    """The address of a service for a script."""

    host: str
    port: int


class Context(Struct, frozen=True, omit_defaults=True):
    """The context of document 003; every path and address is valid where the script runs."""

    sandbox_id: str
    workspace_path: str
    services: dict[str, ScriptService]
    audit_log_path: str
    trace_path: str
    task: dict[str, str]
    scenario_params: dict[str, Any]
    reference: bool = False
    """True before the agent starts: the script solves the task itself, then checks the result."""


def build_context(world: World, host: Mapping[str, tuple[str, int]] | None = None) -> Context:
    """Return the context for a script in the sandbox.

    Or on this machine, with `host` as the addresses of its services.
    """
    inside = host is None
    return Context(
        sandbox_id=f"sb-{world.trial.id}",
        workspace_path=world.sandbox.workspace if inside else str(world.view()),
        services={name: _get_service_address(world, one, host) for name, one in world.services.items()},
        audit_log_path=_lend_log(world, world.audit_log) if inside else str(world.audit_log),
        trace_path=_lend_log(world, world.trace_log) if inside else str(world.trace_log),
        task={"prompt": world.trial.task.prompt},
        scenario_params=world.trial.params,
    )


def _lend_log(world: World, log: Path) -> str:
    """Return a log where the script can read it; empty before the agent has started."""
    return world.lend(log.name, log.read_bytes() if log.exists() else b"")


def _get_service_address(world: World, service: Service, host: Mapping[str, tuple[str, int]] | None) -> ScriptService:
    spec = service.spec
    if host is not None:
        return ScriptService(*host[spec.name])
    name = world.environ.get(f"{spec.variable}_HOST", spec.name)
    return ScriptService(name, int(world.environ.get(f"{spec.variable}_PORT", get_port(spec))))


@asynccontextmanager
async def open_host_services(world: World) -> AsyncIterator[dict[str, tuple[str, int]]]:
    """Yield the addresses of all services while this is open; closing it drops remaining connections."""
    async with AsyncExitStack() as forwarders:
        addresses = {}
        for name, service in world.services.items():
            if isinstance(service.upstream, str):
                forwarder = await Forwarder(service.upstream).listen()
                forwarders.push_async_callback(forwarder.close)
                addresses[name] = ("127.0.0.1", forwarder.port)
            else:
                addresses[name] = service.upstream
        yield addresses


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


async def run_script(script: Path, cwd: Path, stdin: bytes, *, timeout_s: float, keep: int) -> CommandResult:
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
    # A script that a signal ended has no exit code. After a timeout the signal is Holdfast's own and says nothing.
    killed = code is not None and code < 0
    return CommandResult(
        exit_code=None if killed or not in_time else code,
        stdout=out.data,
        stderr=err.text.encode(),
        timed_out=not in_time,
        signal=-code if code is not None and killed and in_time else 0,
        duration_ms=took_ms,
    )


async def _wait_in_time(process: asyncio.subprocess.Process, timeout_s: float) -> bool:
    """Return whether it ended by itself in time; its group is killed in any case."""
    try:
        async with asyncio.timeout(timeout_s):
            await process.wait()
    except TimeoutError:
        return False
    finally:
        kill_group(process.pid, signal.SIGKILL)
        await process.wait()
    return True
