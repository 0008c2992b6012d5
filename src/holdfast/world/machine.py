"""This machine as a place for programs: the spec's folder, the user's environment, one launch host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.model.spec import AgentSpec

if TYPE_CHECKING:
    from holdfast.planes.site_planes import SitePlanes
    from holdfast.planes.trial_address import TrialAddress
    from holdfast.processes.launcher import Launcher
    from holdfast.processes.program import Program
    from holdfast.protocols.trial import TrialContext


class Machine:
    """What the bare worlds of a site share. Opens a place for each process tree that is to be told apart."""

    def __init__(self, root: Path, environ: Mapping[str, str], site_planes: SitePlanes | None = None) -> None:
        self.root = root
        self.environ = environ
        self.site_planes = site_planes
        self.planes: TrialAddress | None = None
        """The address that an agent which already runs was started with: a gateway's."""
        self._launcher: Launcher | None = None

    @property
    def launcher(self) -> Launcher:
        """Made when the first program is started: most sites of a fast agent never start one."""
        if self._launcher is None:
            from holdfast.processes.launcher import Launcher

            self._launcher = Launcher()
        return self._launcher

    async def place(self) -> MachinePlace:
        """A place whose programs have an address of their own, where this site has planes. Close it after use."""
        return MachinePlace(self, None if self.site_planes is None else await self.site_planes.open_address())

    async def close(self) -> None:
        if self._launcher is not None:
            await self._launcher.close()


class MachinePlace:
    """Where one program, and all that it starts, runs on this machine."""

    def __init__(self, machine: Machine, address: TrialAddress | None) -> None:
        self._machine = machine
        self._address = address
        self.folder = str(machine.root)
        self.boxed = False
        self.sees = "it is run by sh -c in the spec's folder: check its name, its path and that it is executable"
        self.own_files = "run its command in the spec's folder to see why"
        self.environ: Mapping[str, str] = machine.environ if address is None else {**machine.environ, **address.environ}

    def mounted(self, agent: AgentSpec) -> AgentSpec:
        return agent

    def argv(self, agent: AgentSpec, env: Mapping[str, str]) -> list[str]:
        from holdfast.processes.startable import argv_of

        return argv_of(agent, self._machine.root, env)

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: tuple[int, int, int]) -> Program:
        from holdfast.processes.startable import start

        program = await start(self._machine.launcher, list(argv), env, self._machine.root, stdio)
        if self._address is not None:
            self._address.process_tree.first = program.keeper
        return program

    async def forward(self, port: int) -> None:
        """Its ports are this machine's own."""

    @contextmanager
    def serving(self, context: TrialContext) -> Iterator[None]:
        if self._address is None:
            yield
        else:
            with self._address.serving(context):
                yield

    async def close(self) -> None:
        if self._address is not None:
            await self._address.close()
