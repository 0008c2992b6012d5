"""Python agents in temporary folders, asked through a real Site."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

from msgspec.structs import replace

from holdfast.execute.open_site import open_site
from holdfast.execute.site import Site
from holdfast.execute.trial import run_trial
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.spec import AgentSpec, Spec, ToolRef
from holdfast.model.task import Task
from holdfast.model.trial import Trial


def spec_of(
    folder: Path,
    code: str,
    *,
    scenarios: Sequence[Scenario] = (),
    retries: int = 0,
    tools: Sequence[str] = (),
    **agent: Any,
) -> Spec:
    """A spec whose agent is `agent.py` with that code, asked at `agent:ask`."""
    (folder / "agent.py").write_text(dedent(code), encoding="utf-8")
    section: dict[str, Any] = {"type": "python", "endpoint": "agent:ask", **agent}
    section["tools"] = tuple(ToolRef(path) for path in tools)
    calm = () if any(s.name == "calm" for s in scenarios) else (Scenario("calm"),)
    return Spec(
        path=str(folder / "spec.yaml"), agent=AgentSpec(**section), scenarios=(*calm, *scenarios), retries=retries
    )


def trial_of(*turns: str, scenario: str = "calm", n: int = 0, **fields: Any) -> Trial:
    return Trial(id=f"{n:012x}", kind="contract", scenario=Scenario(scenario), task=Task(turns or ("hello",)), **fields)


def placed(spec: Spec, trial: Trial) -> Trial:
    """The trial in the scenario of the spec that it names."""
    return replace(trial, scenario=spec.get_scenario(trial.scenario.name))


def fault(tool: str, mode: str, *, plane: Any = "tool", raises: str | None = None, **settings: Any) -> Injection:
    """An injection; keys of a schedule go to its schedule."""
    schedule = {key: settings.pop(key) for key in list(settings) if key in Schedule.__struct_fields__}
    return Injection(plane, tool, mode, settings, Schedule(**schedule), raises=raises)


async def with_site(
    spec: Spec, use: Callable[[Site], Any], *, concurrency: int | None = 1, environ: dict[str, str] | None = None
) -> Any:
    site = await open_site(spec, environ=dict(os.environ) if environ is None else environ, concurrency=concurrency)
    try:
        return await use(site)
    finally:
        await site.close()


def observe(
    spec: Spec, *trials: Trial, concurrency: int | None = 1, on_fault: Callable[[Trial, FaultMet], None] | None = None
) -> list[Observation]:
    """Each trial's observation, run one after the other."""

    async def use(site: Site) -> list[Observation]:
        return [await run_trial(site, placed(spec, trial), on_fault) for trial in trials or (trial_of(),)]

    return asyncio.run(with_site(spec, use, concurrency=concurrency))


def ask(folder: Path, code: str, *turns: str, **options: Any) -> Observation:
    """The observation of one trial of that code."""
    return observe(spec_of(folder, code, **options), trial_of(*turns))[0]
