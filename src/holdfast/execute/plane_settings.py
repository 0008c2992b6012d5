"""What the planes of a site are opened with, from its spec."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.execute.agent_section import resolved_models
from holdfast.execute.options import ModelOptions
from holdfast.execute.plane_needs import recorded_urls, replays, rule_urls
from holdfast.model.spec import AgentSpec, Spec
from holdfast.planes.site_planes import PlaneSettings


def plane_settings(
    spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str], models: ModelOptions, *, web: bool
) -> PlaneSettings:
    """What the planes of a site are opened for; `agent` is its section with references resolved."""
    return PlaneSettings(
        agent,
        root,
        environ,
        resolved_models(spec, environ),
        spec.scenarios,
        web=web,
        read=(*rule_urls(spec), *recorded_urls(spec)),
        record=models.record,
        replay=models.replay,
        mask=models.mask,
        tool_results=not agent.in_python or spec.tools_on_wire or replays(spec),
        network=None if spec.world is None else spec.world.network,
    )
