"""run_trial: one trial on an open Site. The one effectful step of the flow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

from msgspec.structs import replace

from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.execute.simulate import damage
from holdfast.execute.site import Site
from holdfast.model.observation import Answer, FaultMet, Observation
from holdfast.model.spec import CALM, Scenario
from holdfast.model.trial import Trial
from holdfast.planes.describe import said
from holdfast.planes.weather import Weather

Met = Callable[[Trial, FaultMet], None]

_NOTHING = Answer(turns=())


class Voyage:
    """What surrounds one trial: its weather on the input, and its ledger."""

    def __init__(self, trial: Trial, scenario: Scenario, on_fault: Met | None) -> None:
        self.trial = trial
        self.ledger: list[FaultMet] = []
        self._on_fault = on_fault
        self._before = 0
        self.weather = None if scenario.calm else Weather(trial, scenario, self.met)
        self.on_calls = self.weather is not None and scenario.on_calls

    def ask(self, turn: str) -> str:
        self._before = len(self.ledger)
        return turn if self.weather is None else self.weather.rewrite(turn)

    def lost(self) -> None:
        self.ledger[self._before :] = [replace(met, effect="no_effect") for met in self.ledger[self._before :]]

    def met(self, fault: FaultMet) -> None:
        self.ledger.append(fault)
        if self._on_fault is not None:
            self._on_fault(self.trial, fault)


async def run_trial(site: Site, trial: Trial, on_fault: Met | None = None) -> Observation:
    """Runs the agent once. Our own failures are repeated, then told; the agent's are the result."""
    attempt = 0
    while True:
        attempt += 1
        started = perf_counter()
        voyage = Voyage(trial, site.scenarios.get(trial.scenario, CALM), on_fault)
        try:
            answer = await _run(site, trial, voyage)
        except AgentUnavailable as broken:
            if broken.config and trial.kind == "control":
                raise  # the spec is at fault: the run ends before its trials begin
            answer, error = _NOTHING, _unavailable(broken)
        except HarnessError as broken:
            answer, error = broken.answer or _NOTHING, str(broken)
        except Exception as broken:  # a bug of ours or of a plug-in ends one trial, not the run
            answer, error = _NOTHING, said(broken)
        else:
            return _seen(site, trial, voyage, answer, attempt, started)
        if attempt > site.spec.retries or any(turn.ending != "answered" for turn in answer.turns):
            return replace(_seen(site, trial, voyage, answer, attempt, started), error=error)
        await asyncio.sleep(0.05 * attempt)


def _unavailable(broken: AgentUnavailable) -> str:
    """The failure as one line of a trial's error."""
    return f"{broken}. {broken.hint}" if broken.hint else str(broken)


async def _run(site: Site, trial: Trial, voyage: Voyage) -> Answer:
    if site.has_reset:
        await site.agent.reset(trial)
    answer = await site.agent.run(trial.task, voyage)
    if site.simulate and voyage.on_calls and voyage.weather is not None:
        return await damage(answer, voyage.weather, site.spec.agent.timeout_ms)
    return answer


def _seen(site: Site, trial: Trial, voyage: Voyage, answer: Answer, attempts: int, started: float) -> Observation:
    return Observation(
        trial=trial.id,
        turns=answer.turns,
        ledger=tuple(voyage.ledger),
        output=answer.output,
        notes=answer.notes,
        calls=answer.calls,
        concurrent=answer.concurrent,
        simulated=site.simulate and voyage.on_calls,
        attempts=attempts,
        duration_ms=(perf_counter() - started) * 1000,
    )
