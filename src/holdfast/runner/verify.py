"""One question to the agent, without chaos."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import AgentUnavailable
from holdfast.execute.open_site import open_site
from holdfast.execute.options import WorldOptions
from holdfast.model.codec import carried
from holdfast.model.observation import Observation
from holdfast.model.spec import Spec
from holdfast.plan import RunOptions, plan
from holdfast.runner.job import refuse_unrunnable, world_secrets
from holdfast.runner.preflight import preflight
from holdfast.spec import secret_values
from holdfast.store.mask import Masker


async def ask_once(spec: Spec, environ: Mapping[str, str]) -> tuple[Observation, tuple[str, ...]]:
    """The agent's answer to the first prompt, and the tools and model functions it was found to have."""
    refuse_unrunnable(spec)
    first = plan(spec).preflight
    assert first is not None, "a contract asks something"
    secrets = world_secrets(spec, RunOptions(), environ)
    mask = Masker((*secret_values(spec, environ), *secrets.values()))
    try:
        site = await open_site(spec, environ=environ, world=WorldOptions(secrets=secrets))
        try:
            return mask.struct(carried(await preflight(site, first, lambda message: None))), site.targets
        finally:
            await site.close()
    except AgentUnavailable as gone:
        raise mask.unavailable(gone) from None
