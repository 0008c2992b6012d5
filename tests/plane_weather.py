"""Short ways to weather and faults for the tests of the planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.planes.injection.weather import Weather
from holdfast.protocols.fault import Call, FaultContext, Forward, Reply

TRIAL = Trial(id="0" * 12, kind="contract", scenario=Scenario("s"), task=Task(("hi",)), seed=1)


def fault(target: str, mode: str, *, plane: Any = "tool", raises: str | None = None, **settings: Any) -> Injection:
    """An injection; keys of a schedule go to its schedule."""
    schedule = {key: settings.pop(key) for key in list(settings) if key in Schedule.__struct_fields__}
    return Injection(plane, target, mode, settings, Schedule(**schedule), raises=raises)


def weather_of(*injections: Injection, trial: Trial = TRIAL) -> tuple[Weather, list[FaultMet]]:
    """A trial's weather and its ledger."""
    ledger: list[FaultMet] = []

    def amend(met: FaultMet) -> None:
        at = max(at for at, one in enumerate(ledger) if (one.index, one.call) == (met.index, met.call))
        ledger[at] = met

    return Weather(replace(trial, scenario=Scenario("s", injections)), ledger.append, amend), ledger


@dataclass(frozen=True)
class Own:
    """A plug-in that does what a test says."""

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        return await self.act(call, forward, ctx)

    @staticmethod
    async def act(call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise NotImplementedError
