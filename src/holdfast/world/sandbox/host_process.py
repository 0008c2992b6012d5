"""Starts and talks to the host process of sandboxes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Sequence

from holdfast.errors import SandboxFailed
from holdfast.processes.launcher import spawn_own_program
from holdfast.processes.leftovers import kill_group
from holdfast.processes.program import KILL_S
from holdfast.world.supervisors import messages as wire
from holdfast.world.supervisors.connection import SupervisorConnection
from holdfast.world.supervisors.messages import SandboxLayout, SupervisorMessage


class HostProcess:
    """The host process of one backend. Close it after use."""

    def __init__(self, uid: int, gid: int) -> None:
        self._control, theirs = wire.make_pair()
        self._control.settimeout(KILL_S)
        try:
            self._process = spawn_own_program(
                "holdfast.world.sandbox.host", theirs.fileno(), str(uid), str(gid), env={}
            )
        except OSError as broken:
            self._control.close()
            raise SandboxFailed(f"the sandbox host could not be started: {broken}") from broken
        finally:
            theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def receive_owner_mapping(self) -> int:
        """Receive the descriptor that maps file owners, which a root host sends first; -1 if there is none."""
        message = wire.receive(self._control)
        if message is None:
            raise SandboxFailed("the sandbox host ended immediately")
        return message.fds[0] if message.fds else -1

    def send_order(
        self,
        layout: SandboxLayout,
        fds: Sequence[int],
        notice: Callable[[SupervisorMessage], None],
        lost: Callable[[], None],
    ) -> SupervisorConnection:
        """Hand a layout to the next supervisor; raise HarnessError if the host is gone."""
        ours, theirs = wire.make_pair()
        written = wire.write_order(layout)
        try:
            wire.send(self._control, wire.START, 0, fds=[theirs.fileno(), written, *fds])
        except OSError as broken:
            ours.close()
            raise SandboxFailed("the sandbox host is gone") from broken
        finally:
            theirs.close()
            os.close(written)
        return SupervisorConnection(ours, notice, lost)

    async def close(self) -> None:
        """End the host and all its supervisors."""
        self._control.close()
        try:
            await asyncio.to_thread(self._process.wait, KILL_S)
        except subprocess.TimeoutExpired:
            kill_group(self._process.pid, signal.SIGKILL)
            self._process.wait()
