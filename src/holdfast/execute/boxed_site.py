"""Opens the worlds of a site from the spec, with each trial's own values filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from holdfast.execute.options import WorldOptions
from holdfast.execute.sandbox_backend import build_environ, list_interpreter_paths, open_backend
from holdfast.model.spec import Spec
from holdfast.model.trial import Trial
from holdfast.model.world import WorldSpec
from holdfast.planes.site_planes import SitePlanes
from holdfast.processes import scratch
from holdfast.spec.references import interpolate, resolve
from holdfast.spec.shell_places import fill_command
from holdfast.world.agent_mounts import MountedAgent
from holdfast.world.site_worlds import SiteWorlds, WorldSettings
from holdfast.world.unsupported import list_unsupported, refuse_lacking
from holdfast.world.world_factory import WorldFactory


def make_fill(world: WorldSpec, environ: Mapping[str, str], secrets: Mapping[str, str]) -> Callable[[Trial], WorldSpec]:
    """Return the world of one trial with its references resolved."""
    plain = msgspec.to_builtins(world)

    def fill(trial: Trial) -> WorldSpec:
        def fill_value(part: Any) -> Any:
            if isinstance(part, str):
                return resolve(part, environ, secrets=secrets, params=trial.params)
            if isinstance(part, dict):
                return {key: fill_part(key, inner) for key, inner in part.items()}
            return [fill_value(inner) for inner in part] if isinstance(part, list | tuple) else part

        def fill_part(key: str, inner: Any) -> Any:
            if key in _NAMED and isinstance(inner, dict):  # their keys are the user's own words
                return {name: fill_value(text) for name, text in inner.items()}
            fill_in = _AS_WRITTEN.get(key)
            return fill_value(inner) if fill_in is None else fill_text(inner, fill_in)

        def fill_text(part: Any, fill_in: _FillIn) -> Any:
            if isinstance(part, str):
                return fill_in(part, trial.params)
            return [fill_text(inner, fill_in) for inner in part] if isinstance(part, list | tuple) else part

        return msgspec.convert(fill_value(plain), WorldSpec)

    return fill


_NAMED = ("env", "headers", "dns_overrides")
_FillIn = Callable[[str, Mapping[str, Any]], str]
_AS_WRITTEN: Mapping[str, _FillIn] = {
    "commands": fill_command,
    "content": interpolate,
    "response": interpolate,
    "sql": interpolate,
    "wait_for": fill_command,
}
"""A dollar here belongs to the shell, the database or the mock; parameters are filled in, in a shell as one word."""


async def open_factory(
    spec: Spec,
    mounted: MountedAgent,
    root: Path,
    environ: Mapping[str, str],
    options: WorldOptions,
    planes: SitePlanes,
) -> WorldFactory:
    """Open the backend; raise UserError if it does not work here, or if the user is strict and it lacks a feature."""
    assert spec.world is not None
    async with AsyncExitStack() as opened:
        folder = scratch.make("world", in_memory=True)
        opened.callback(scratch.remove, folder)
        backend = await open_backend(options.backend, folder, spec.world.base)
        opened.push_async_callback(backend.close)
        settings = _build_settings(spec, mounted, root, environ, options)
        visible = (*settings.visible, *settings.links)
        lacks = await list_unsupported(spec.world, spec.scenarios, backend, agent=mounted.agent, visible=visible)
        if options.strict:
            refuse_lacking(spec.world, (*backend.isolation, *lacks), backend.name)
        shared = SiteWorlds(settings, backend, planes, folder)
        shared.unsupported = lacks
        opened.pop_all()  # from here on the factory closes it
    return WorldFactory(shared)


def _build_settings(
    spec: Spec, mounted: MountedAgent, root: Path, environ: Mapping[str, str], options: WorldOptions
) -> WorldSettings:
    assert spec.world is not None
    return WorldSettings(
        fill=make_fill(spec.world, environ, options.secrets),
        root=root,
        secrets=options.secrets,
        visible={**list_interpreter_paths(), **mounted.programs.visible, **mounted.mounts.visible},
        links=mounted.programs.links,
        nested=mounted.agent.nested_sandbox,
        mounts=mounted.mounts,
        environ={**build_environ(mounted.programs.folders), **mounted.programs.variables},
        agent_environ=mounted.agent.env,
        keeping=options.keep,
        tell=options.on_message,
    )
