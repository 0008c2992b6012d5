"""A BareWorld: this machine as it is, around one trial. Opening it does nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import HarnessError
from holdfast.model.codec import encode
from holdfast.model.trial import Trial
from holdfast.model.world import AuditEvent
from holdfast.processes import scratch

if TYPE_CHECKING:
    from holdfast.processes.answer_file import FolderAnswerFile
    from holdfast.protocols.sandbox import FileChange, Sandbox
    from holdfast.protocols.service import Service
    from holdfast.protocols.trial import TrialContext
    from holdfast.protocols.world import Planes
    from holdfast.world.machine import Machine, MachinePlace

_NOWHERE = Path("/dev/null")


class BareWorld:
    """What an agent is given where no sandbox is asked for. Close it if anything was opened in it."""

    __slots__ = ("_lent", "_machine", "_place", "audit_log", "context", "foreseen", "trace_log", "used")

    def __init__(self, context: TrialContext, machine: Machine) -> None:
        self.context = context
        self._machine = machine
        self._place: MachinePlace | None = None
        self._lent: Path | None = None
        self.audit_log = self.trace_log = _NOWHERE
        self.foreseen: dict[tuple[str, ...], object] = {}
        self.used = False
        """Whether anything is to be closed."""

    @property
    def root(self) -> Path:
        return self._machine.root

    @property
    def trial(self) -> Trial:
        return self.context.trial

    @property
    def sandbox(self) -> Sandbox:
        raise HarnessError("there is no sandbox around this agent, so its state cannot be looked at")

    @property
    def environ(self) -> Mapping[str, str]:
        return self._machine.environ

    @property
    def services(self) -> Mapping[str, Service]:
        return {}

    @property
    def planes(self) -> Planes | None:
        return self._machine.planes

    @property
    def remembered(self) -> dict[tuple[str, ...], object]:
        return self.foreseen

    @property
    def unseen(self) -> Mapping[str, str]:
        return {}

    async def place(self) -> MachinePlace:
        self.used = True
        if self._place is None:
            self._place = await self._machine.place()
        return self._place

    def time_left_s(self) -> float:
        return inf

    def heard(self, data: bytes) -> None:
        """Nobody looks for secrets in it as it comes."""

    def lend(self, name: str, content: bytes) -> str:
        self.used = True
        if self._lent is None:
            self._lent = scratch.make("lent")
        path = self._lent / name
        path.write_bytes(content)
        return str(path)

    def settle(self) -> None:
        """The agent has ended: its trace is a file. Nothing was audited."""
        self.audit_log = Path(self.lend("audit.jsonl", b""))
        trace = b"".join(encode(event) + b"\n" for event in self.context.traced())
        self.trace_log = Path(self.lend("trace.jsonl", trace))

    def answer_file(self, name: str) -> FolderAnswerFile:
        from holdfast.processes.answer_file import FolderAnswerFile

        return FolderAnswerFile(self.root, name)

    def view(self) -> Path:
        return self.root

    def changes(self) -> Iterator[FileChange]:
        return iter(())

    def audit(self) -> Iterator[AuditEvent]:
        return iter(())

    async def close(self) -> None:
        """Nothing of the trial is left."""
        try:
            if self._lent is not None:
                scratch.remove(self._lent)
        finally:
            if self._place is not None:
                await self._place.close()
