"""holdfast doctor: what can be met on this machine, for this spec, by this agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from holdfast.doctor.agent import ask_agent
from holdfast.doctor.machine import needed, try_machine
from holdfast.doctor.needs import what_is_needed
from holdfast.doctor.spec import look_at_spec
from holdfast.execute.agent_section import resolve_agent
from holdfast.execute.options import ModelOptions
from holdfast.model.codec import carried
from holdfast.model.spec import Problem, Spec
from holdfast.plan import RunOptions
from holdfast.report.diagnosis import AskedAgent, Diagnosis, DoctorFinding
from holdfast.report.wording import plural
from holdfast.runner.job import refuse_unrunnable, world_secrets
from holdfast.spec import secret_values
from holdfast.store.mask import Masker

TellFindings = Callable[[str, str, Sequence[DoctorFinding], Sequence[str]], None]
"""Takes a part as soon as it is known: its title, what it is about, what was found, and notes."""


class ExaminedSpec:
    """A spec that can be run, and what the doctor is to do with it."""

    def __init__(
        self, spec: Spec, problems: tuple[Problem, ...], environ: Mapping[str, str], replay: Path | None, ask: bool
    ) -> None:
        """Raises what a run would raise for a spec that it would refuse."""
        refuse_unrunnable(spec)
        self.spec = spec
        self.problems = problems
        secrets = world_secrets(spec, RunOptions(), environ)
        self.mask = Masker((*secret_values(spec, environ), *secrets.values()))
        self.models = ModelOptions(None, replay, self.mask.text)
        self.agent = resolve_agent(spec.agent, environ, spec.params[0], secrets)
        self.ask = ask


async def examine_agent(case: ExaminedSpec, environ: Mapping[str, str], tell: TellFindings) -> Diagnosis:
    """The agent alone: what it needs, and its answer to the first prompt."""
    needs = await what_is_needed(case.spec, case.agent, environ)
    broken = tuple([case.mask.struct(one) for one in needs if one.broken])
    if broken:
        tell("agent", "not asked: what it needs is not there", broken, ())
        return Diagnosis((), broken)
    return Diagnosis((), (), await _ask(case, environ, tell))


async def _ask(case: ExaminedSpec, environ: Mapping[str, str], tell: TellFindings) -> AskedAgent:
    asked: AskedAgent = case.mask.struct(carried(await ask_agent(case.spec, environ, case.models)))
    tell("agent", f"asked once, in calm: {asked.prompt}", asked.findings, asked.notes)
    return asked


async def examine(case: ExaminedSpec | None, environ: Mapping[str, str], tell: TellFindings) -> Diagnosis:
    """Tries the machine, then looks at the spec, then asks the agent; each part is told when it is known."""
    wanted = needed(case.spec if case else None, case.models if case else ModelOptions())
    machine = await try_machine(environ, wanted)
    tell("machine", "each route tried with a real call and a fault on it", machine, ())
    if case is None:
        return Diagnosis(machine)
    spec, mask = case.spec, case.mask
    placed = await look_at_spec(spec, case.agent, case.problems, environ, case.models)
    needs = await what_is_needed(spec, case.agent, environ)
    found = tuple([mask.struct(one) for one in (*placed, *needs)])
    tell("spec", f"{spec.path}: {plural(len(spec.scenarios), 'scenario')}", found, ())
    if not case.ask:
        return Diagnosis(machine, found)
    if any(one.broken for one in needs):
        tell("agent", "not asked: what it needs is not there", (), ())
        return Diagnosis(machine, found)
    return Diagnosis(machine, found, await _ask(case, environ, tell))
