"""Python agents in processes of their own: a new one per trial (fresh) or one per slot (worker)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.agents.process import HOST_DIED, Begun, Host
from holdfast.agents.wire import Ready, Setup
from holdfast.errors import HarnessError
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec, Scenario, Task
from holdfast.model.trial import Trial
from holdfast.protocols import Trip

if TYPE_CHECKING:
    from holdfast.planes.harbour import Harbour
    from holdfast.planes.lobby import Lobby
    from holdfast.planes.mooring import Mooring


class PythonAgent:
    """Fresh: forked from a process that has imported the agent. Worker: kept between trials."""

    def __init__(self, setup: Setup, environ: Mapping[str, str], harbour: Harbour | None) -> None:
        self._setup = setup
        self._environ = environ
        self._harbour = harbour
        self._lobby: Lobby | None = None
        self._moorings: dict[Host, Mooring] = {}
        self._zygote: Host | None = None
        self._idle: list[Host] = []
        self._keep = setup.agent.isolation == "worker"
        self._restart = asyncio.Lock()
        self._suspects: set[str] = set()
        """Trials under way when a host died: repeated in a host of their own, they show whose doing it was."""
        self.ready: Ready

    @classmethod
    async def open(
        cls,
        agent: AgentSpec,
        root: Path,
        scenarios: tuple[Scenario, ...],
        environ: Mapping[str, str],
        harbour: Harbour | None = None,
    ) -> PythonAgent:
        """Imports the agent in a process of its own; raises AgentUnavailable if it cannot."""
        place = agent.isolation == "worker" or sys.platform != "linux"
        opened = cls(Setup(agent, str(root), scenarios, "place" if place else "fork"), environ, harbour)
        try:
            first = await opened._start()
            opened.ready = first.ready
            if place:
                opened._idle.append(first)
            elif first.ready.threads > 1:
                await opened._end(first)
                opened._setup = replace(opened._setup, mode="place")
                opened._idle.append(await opened._start())
            else:
                opened._zygote = first
        except BaseException:
            await opened.close()
            raise
        return opened

    @property
    def cost_note(self) -> str:
        """What fresh processes cost where forking is unsafe; empty where it is not."""
        if self._setup.mode == "fork" or self._keep:
            return ""
        ready: Ready = self.ready
        why = f"{ready.threads} threads run after its import" if ready.threads > 1 else "this platform"
        return f"forking is unsafe ({why}): a new interpreter per trial, about {ready.import_ms:.0f} ms each to import"

    async def run(self, task: Task, trip: Trip) -> Answer:
        alone = trip.trial.id in self._suspects
        host = await (self._own_host() if alone else self._host())
        try:
            with self._carried(host, trip) as begun:
                return await host.show(trip, task.turns, begun)
        except HarnessError as broken:
            if str(broken) == HOST_DIED:
                self._suspects.add(trip.trial.id)
            raise
        finally:
            await self._give_back(host)

    async def reset(self, trial: Trial) -> None:
        """The reset function runs in the agent's own process, before it is asked."""

    async def close(self) -> None:
        for host in [self._zygote, *self._idle]:
            if host is not None:
                await self._end(host)
        self._zygote, self._idle = None, []
        if self._lobby is not None:
            await self._lobby.close()

    @contextmanager
    def _carried(self, host: Host, trip: Trip) -> Iterator[Begun | None]:
        """The trial's traffic is met while this is open: by its process in a lobby, else at its host's own mooring."""
        if host in self._moorings:
            with self._moorings[host].carry(trip):
                yield None
        elif self._lobby is not None:
            with self._lobby.carry(trip) as begun:
                yield begun
        else:
            yield None

    async def _host(self) -> Host:
        if self._setup.mode == "place":
            return self._idle.pop() if self._idle else await self._start()
        if self._zygote is not None and self._zygote.alive:
            return self._zygote
        async with self._restart:
            if self._zygote is None or not self._zygote.alive:
                if self._zygote is not None:
                    await self._end(self._zygote)
                self._zygote = await self._start()
        return self._zygote

    async def _own_host(self) -> Host:
        host = await self._start()
        host.alone = True
        return host

    async def _start(self) -> Host:
        if self._harbour is None:
            return await Host.start(self._setup, self._environ)
        if self._setup.mode == "fork":
            self._lobby = self._lobby or await self._harbour.lobby()
            return await Host.start(self._setup, {**self._environ, **self._lobby.environ})
        mooring = await self._harbour.moor()
        try:
            host = await Host.start(self._setup, {**self._environ, **mooring.environ})
        except BaseException:
            await mooring.close()
            raise
        mooring.crew.first = host.process.pid
        self._moorings[host] = mooring
        return host

    async def _end(self, host: Host) -> None:
        host.close()
        mooring = self._moorings.pop(host, None)
        if mooring is not None:
            await mooring.close()

    async def _give_back(self, host: Host) -> None:
        if self._setup.mode == "fork" and not host.alone:
            return
        if self._keep and host.idle:
            self._idle.append(host)
        else:
            await self._end(host)
