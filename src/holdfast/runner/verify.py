"""One question to the agent, without chaos."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.errors import AgentUnavailable, UsageError
from holdfast.execute.local import LocalExecutor
from holdfast.execute.open_site import open_site
from holdfast.execute.options import WorldOptions
from holdfast.model.codec import carried
from holdfast.model.observation import Observation
from holdfast.model.spec import Spec
from holdfast.model.task import Task
from holdfast.plan import RunOptions, control_trial
from holdfast.runner.job import refuse_unrunnable, world_secrets
from holdfast.runner.preflight import preflight
from holdfast.spec import secret_values
from holdfast.store.mask import Masker


async def ask_once(spec: Spec, environ: Mapping[str, str]) -> tuple[Observation, tuple[str, ...]]:
    """The agent's answer to the first prompt, and the tools and model functions it was found to have.

    A simulated user is left out: it would tell no more.
    """
    refuse_unrunnable(spec)
    probes = (Task((probe,), "probe") for rule in spec.invariants for probe in rule.probes)
    task = next(iter((*spec.tasks, *probes)), None)
    if task is None:
        raise UsageError(f"{spec.path} has nothing to ask", hint="add golden_prompts: or task:")
    first = control_trial(spec, replace(task.plain, user=UNSET), spec.params[0])
    secrets = world_secrets(spec, RunOptions(), environ)
    mask = Masker((*secret_values(spec, environ), *secrets.values()))
    try:
        site = await open_site(spec, environ=environ, world=WorldOptions(secrets=secrets))
        try:
            return mask.struct(
                carried(await preflight(LocalExecutor(site), spec, first, lambda message: None))
            ), site.targets
        finally:
            await site.close()
    except AgentUnavailable as gone:
        raise mask.unavailable(gone) from None
