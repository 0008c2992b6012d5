"""The gateway of a command agent, open around one trial."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.model.spec import AgentSpec, ModelSpec
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from holdfast.planes.trial_address import TrialAddress
from planes_kit import FakeContext


@asynccontextmanager
async def gateway_for(
    context: FakeContext, folder: Path, models: Mapping[str, ModelSpec], environ: Mapping[str, str] | None = None
) -> AsyncIterator[TrialAddress]:
    """The address at which the agent's calls arrive; the trial ends first, then the gateway closes."""
    agent = AgentSpec(type="command", command="agent")
    site_planes = SitePlanes(PlaneSettings(agent, folder, environ or {}, models, web=False))
    address = await site_planes.open_address()
    try:
        with address.serve_trial(context):
            yield address
    finally:
        await address.close()
        await site_planes.close()
