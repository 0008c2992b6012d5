"""What the boxed worlds of a site are opened with: planes, backend, and what of this machine they see."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from holdfast.execute.options import WorldOptions
from holdfast.execute.sandbox_backend import interpreter, open_backend, usual_environ
from holdfast.execute.world_values import filling
from holdfast.model.spec import Spec
from holdfast.planes.site_planes import SitePlanes
from holdfast.processes import scratch
from holdfast.world.mounted_agent import MountedAgent
from holdfast.world.shortcomings import refuse_lacking, shortcomings
from holdfast.world.site_worlds import SiteWorlds, WorldSettings
from holdfast.world.world_factory import WorldFactory


async def open_factory(
    spec: Spec,
    seen: MountedAgent,
    root: Path,
    environ: Mapping[str, str],
    options: WorldOptions,
    planes: SitePlanes,
) -> WorldFactory:
    """Opens the backend; UserError if it does not work here, or if the user is strict and it lacks something."""
    assert spec.world is not None
    async with AsyncExitStack() as opened:
        folder = scratch.make("world", in_memory=True)
        opened.callback(scratch.remove, folder)
        backend = await open_backend(options.backend, folder, spec.world.base)
        opened.push_async_callback(backend.close)
        settings = _settings(spec, seen, root, environ, options)
        shown = (*settings.visible, *settings.links)
        lacks = await shortcomings(spec.world, spec.scenarios, backend, agent=seen.agent, shown=shown)
        if options.strict:
            refuse_lacking(spec.world, (*backend.isolation, *lacks), backend.name)
        shared = SiteWorlds(settings, backend, planes, folder)
        shared.shortcomings = lacks
        opened.pop_all()  # closed with the factory from here on
    return WorldFactory(shared)


def _settings(
    spec: Spec, seen: MountedAgent, root: Path, environ: Mapping[str, str], options: WorldOptions
) -> WorldSettings:
    assert spec.world is not None
    return WorldSettings(
        fill=filling(spec.world, environ, options.secrets),
        root=root,
        secrets=options.secrets,
        visible={**interpreter(), **seen.programs.visible, **seen.mounts.visible},
        links=seen.programs.links,
        nested=seen.agent.nested_sandbox,
        mounts=seen.mounts,
        environ={**usual_environ(seen.programs.folders), **seen.programs.variables},
        agent_environ=seen.agent.env,
        scenarios=spec.scenarios,
        keeping=options.keep,
        told=options.told,
    )
