"""Python agents in processes of their own: a new one per trial (fresh) or one per slot (worker)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from holdfast.agents.process import HOST_DIED, Host
from holdfast.agents.wire import Ready, Setup
from holdfast.errors import HarnessError
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec, Scenario, Task
from holdfast.model.trial import Trial
from holdfast.protocols import Trip


class PythonAgent:
    """Fresh: forked from a process that has imported the agent. Worker: kept between trials."""

    def __init__(self, setup: Setup, environ: Mapping[str, str], first: Host) -> None:
        self._setup = setup
        self._environ = environ
        self._zygote = first if setup.mode == "fork" else None
        self._idle = [] if setup.mode == "fork" else [first]
        self._keep = setup.agent.isolation == "worker"
        self._restart = asyncio.Lock()
        self._suspects: set[str] = set()
        """Trials under way when a host died: repeated in a host of their own, they show whose doing it was."""
        self.ready = first.ready

    @classmethod
    async def open(
        cls, agent: AgentSpec, root: Path, scenarios: tuple[Scenario, ...], environ: Mapping[str, str]
    ) -> PythonAgent:
        """Imports the agent in a process of its own; raises AgentUnavailable if it cannot."""
        place = agent.isolation == "worker" or sys.platform != "linux"
        setup = Setup(agent, str(root), scenarios, "place" if place else "fork")
        first = await Host.start(setup, environ)
        if not place and first.ready.threads > 1:
            first.close()
            setup = replace(setup, mode="place")
            first = await Host.start(setup, environ)
        return cls(setup, environ, first)

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
            return await host.show(trip.trial, task.turns, trip.ask, trip.met)
        except HarnessError as broken:
            if str(broken) == HOST_DIED:
                self._suspects.add(trip.trial.id)
            raise
        finally:
            self._give_back(host)

    async def reset(self, trial: Trial) -> None:
        """The reset function runs in the agent's own process, before it is asked."""

    async def close(self) -> None:
        for host in [self._zygote, *self._idle]:
            if host is not None:
                host.close()
        self._zygote, self._idle = None, []

    async def _host(self) -> Host:
        if self._setup.mode == "place":
            return self._idle.pop() if self._idle else await Host.start(self._setup, self._environ)
        if self._zygote is not None and self._zygote.alive:
            return self._zygote
        async with self._restart:
            if self._zygote is None or not self._zygote.alive:
                if self._zygote is not None:
                    self._zygote.close()
                self._zygote = await Host.start(self._setup, self._environ)
        return self._zygote

    async def _own_host(self) -> Host:
        host = await Host.start(self._setup, self._environ)
        host.alone = True
        return host

    def _give_back(self, host: Host) -> None:
        if self._setup.mode == "fork" and not host.alone:
            return
        if self._keep and host.idle:
            self._idle.append(host)
        else:
            host.close()
