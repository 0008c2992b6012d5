"""When a container counts as ready: its first port takes a connection, and `wait_for` succeeds inside."""

from __future__ import annotations

import asyncio
import contextlib

from holdfast.errors import HarnessError
from holdfast.model.world import ServiceSpec
from holdfast.service_kinds import port_of
from holdfast.world.containers.container import docker
from holdfast.world.services.container.ports import Connect

LIMIT_S = 60.0
"""Longer than for servers of this machine: many images first prepare their data."""
PAUSE_S = 0.02
_ALIVE_S = 0.5
"""How often we ask whether it still runs."""
_LOG_LINES = 20


async def ready(spec: ServiceSpec, name: str, connect: Connect) -> None:
    """Waits for it; HarnessError with the end of its log if it ends first, or is late."""
    late = f"takes no connection on port {port_of(spec)}"
    try:
        async with asyncio.timeout(LIMIT_S):
            await _accepts(port_of(spec), name, connect)
            if spec.wait_for is not None:
                late = f"is not ready by its wait_for: {spec.wait_for}"
                await _succeeds(spec.wait_for, name)
        return
    except TimeoutError:
        why = f"{late} after {LIMIT_S:.0f} s"
    except HarnessError as failed:
        why = str(failed)
    raise HarnessError(f"service {spec.name}: {spec.image} {why}{await said(name)}")


async def state(name: str) -> str:
    """How it has ended; empty while it runs."""
    form = "{{.State.Running}} {{.State.OOMKilled}} {{.State.ExitCode}}"
    running, hungry, code = (await docker("inspect", "--format", form, name)).split()
    if running == "true":
        return ""
    return "was ended for its memory" if hungry == "true" else f"ended with code {code} while it started"


async def said(name: str) -> str:
    """The end of its log, as the end of a message."""
    try:
        text = await docker("logs", "--tail", str(_LOG_LINES), name, merged=True)
    except HarnessError as refused:
        return f". Its log cannot be had: {refused}"
    return f". Its log says:\n{text.strip()[-2000:] or 'nothing'}"


async def _accepts(port: int, name: str, connect: Connect) -> None:
    loop = asyncio.get_running_loop()
    asked = loop.time()
    while True:
        with contextlib.suppress(OSError):
            (await connect(port)).close()
            return
        if loop.time() > asked + _ALIVE_S:
            await _alive(name)
            asked = loop.time()
        await asyncio.sleep(PAUSE_S)


async def _succeeds(command: str, name: str) -> None:
    while True:
        try:
            await docker("exec", name, "sh", "-c", command, merged=True)
        except HarnessError as refused:
            await _alive(name)
            if "OCI runtime exec failed" in str(refused):
                raise HarnessError(f"cannot run its wait_for, which needs sh in the image: {refused}") from refused
        else:
            return
        await asyncio.sleep(PAUSE_S)


async def _alive(name: str) -> None:
    ended = await state(name)
    if ended:
        raise HarnessError(ended)
