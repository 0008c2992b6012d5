"""A sandbox as a place for the agent's programs, and the file in it that may hold the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from holdfast.errors import AgentUnavailable, OutsideError
from holdfast.model.spec import AgentSpec
from holdfast.planes.port_forward import PortForward
from holdfast.processes.startable import SHELL
from holdfast.protocols.sandbox import Sandbox, Started, Stdio
from holdfast.protocols.trial import TrialContext
from holdfast.protocols.world import Left
from holdfast.world.agent_mounts import Mounts
from holdfast.world.bare_world import read_left
from holdfast.world.supervisors.conventions import WORKSPACE

SYSTEM = ("/usr", "/opt", "/nix")
"""Of this machine, in every sandbox."""


class BoxedPlace:
    """The workspace of one trial's sandbox. It closes with its world."""

    def __init__(self, sandbox: Sandbox, mounts: Mounts, environ: Mapping[str, str], visible: Sequence[str]) -> None:
        self._sandbox = sandbox
        self._mounts = mounts
        self.folder = mounts.folder(sandbox)
        self.boxed = sandbox.workspace == WORKSPACE
        self.own_files = _own_files(mounts, sandbox)
        self.environ = {**environ, "PYTHONPATH": _python_path(environ, self.folder)} if mounts.whole else environ
        self.sees = what_is_seen(environ.get("PATH", ""), (*SYSTEM, *visible, sandbox.workspace))

    def mounted(self, agent: AgentSpec) -> AgentSpec:
        return self._mounts.within(agent, self._sandbox)

    def argv(self, agent: AgentSpec, env: Mapping[str, str]) -> list[str]:
        """As written; whether it is there, only the sandbox can tell."""
        return [SHELL, "-c", agent.command] if agent.command is not None else [agent.binary or "", *agent.args]

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: tuple[int, int, int]) -> Started:
        try:
            return await self._sandbox.start(argv, env, Stdio(*stdio))
        except OSError as refused:
            why = f"cannot start {argv[0]}: {refused.strerror}"
            raise AgentUnavailable(why, code="agent-not-started", hint=self.sees, config=True) from refused

    async def forward(self, port: int) -> PortForward:
        return await PortForward.open(self._sandbox, port)

    def serving(self, context: TrialContext) -> AbstractContextManager[None]:
        """Its world serves the trial from the beginning."""
        return nullcontext()

    async def close(self) -> None:
        """Its world closes what was started in it."""


def _own_files(mounts: Mounts, sandbox: Sandbox) -> str:
    """For a program that starts and does not find what it needs: what there is of the agent's own."""
    start = f"it starts in {sandbox.workspace}, in a sandbox"
    if mounts.whole:
        return f"{start}, and finds agent.dir in {sandbox.inside(mounts.whole)}, where Python looks for modules, too"
    placed = ", ".join(map(sandbox.inside, mounts.visible)) or "nothing"
    return f"{start}, and sees {placed} of the spec's folder; agent.dir: ./folder shows it a folder and its modules"


def _python_path(environ: Mapping[str, str], folder: str) -> str:
    """The agent's own folder among those that modules are imported from: `uvicorn app:app` names one."""
    return ":".join(filter(None, (environ.get("PYTHONPATH"), folder)))


def what_is_seen(path: str, folders: Sequence[str]) -> str:
    """For a program that is not found in a sandbox: where it was looked for, and what to do."""
    there = f"inside, PATH is {path}, and of this machine there are {', '.join(folders)}"
    return f"{there}; write the program's whole path, or show its folder where it lies: agent.dir: /that/folder"


class WorkspaceAnswerFile:
    """The agent keeps its files, so one that is as it was before the turn is no answer to it."""

    def __init__(self, sandbox: Sandbox, name: str) -> None:
        self.name = name
        self._sandbox = sandbox
        self._before: tuple[int, int, int] | None = None

    def clear(self) -> None:
        self._before = self._state()

    def read(self, limit: int) -> Left:
        if self._before is not None and self._state() == self._before:
            return Left(absent=True)
        try:
            path = self._sandbox.find(self.name)
        except OutsideError as refused:
            return Left(refused=str(refused))
        return Left(absent=True) if path is None else read_left(path, self.name, limit)

    def _state(self) -> tuple[int, int, int] | None:
        """Which file lies there, and when it was written; None if none does."""
        try:
            path = self._sandbox.find(self.name)
            about = None if path is None else path.lstat()
        except (OutsideError, OSError):
            return None
        return None if about is None else (about.st_ino, about.st_mtime_ns, about.st_size)
