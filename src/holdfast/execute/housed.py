"""Opens an agent that runs in a sandbox, with all that its worlds share."""

from __future__ import annotations

import site as python_site
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

import holdfast
from holdfast import plugins
from holdfast.agents.environment import variables
from holdfast.agents.housed import MountedAgent, open_housed, placed
from holdfast.errors import UserError
from holdfast.execute.moored import resolved_models
from holdfast.execute.site import ModelOptions, Site, WorldOptions, rule_urls
from holdfast.execute.surrounded import Surrounded
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.trial import Trial
from holdfast.model.world import WorldSpec
from holdfast.planes.site_planes import PlaneSettings, SitePlanes
from holdfast.processes import scratch
from holdfast.protocols import SandboxBackend
from holdfast.spec.references import interpolate, resolve
from holdfast.world.sandbox.system import present
from holdfast.world.shortcomings import shortcomings
from holdfast.world.strict import refuse_lacking
from holdfast.world.world_factory import WorldFactory, WorldSettings

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


async def open_in_world(
    spec: Spec,
    agent: AgentSpec,
    root: Path,
    environ: Mapping[str, str],
    at_once: int,
    models: ModelOptions,
    world: WorldOptions,
) -> Site:
    """The site of an agent whose references are resolved and that runs in worlds."""
    assert spec.world is not None
    seen = placed(agent, root)
    async with AsyncExitStack() as opened:
        site_planes = SitePlanes(settings(spec, seen.agent, root, environ, models))
        opened.push_async_callback(site_planes.close)
        folder = scratch.make("world", in_memory=True)
        opened.callback(scratch.remove, folder)
        backend = await open_backend(world.backend, folder, spec.world.base)
        opened.push_async_callback(backend.close)
        lacks = await shortcomings(spec.world, spec.scenarios, backend)
        if world.strict:
            refuse_lacking(spec.world, (*backend.isolation, *lacks), backend.name)
        worlds = WorldFactory(_order(spec, seen, root, environ, models, world), backend, site_planes, folder)
        worlds.shortcomings = lacks
        housed = open_housed(seen, root, spec.scenarios)
        opened.pop_all()  # closed with the agent from here on
    limit = spec.world.resources.concurrency_limit
    slots = at_once if limit is None else min(at_once, limit)
    return Site(spec, Surrounded(housed, worlds, site_planes, spec), slots, (kept_here(backend),))


def settings(
    spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str], models: ModelOptions
) -> PlaneSettings:
    assert spec.world is not None
    return PlaneSettings(
        agent,
        root,
        environ,
        resolved_models(spec, environ),
        spec.scenarios,
        web=True,
        read=rule_urls(spec),
        record=models.record,
        replay=models.replay,
        mask=models.mask,
        network=spec.world.network,
    )


def _order(
    spec: Spec, seen: MountedAgent, root: Path, environ: Mapping[str, str], models: ModelOptions, world: WorldOptions
) -> WorldSettings:
    assert spec.world is not None
    return WorldSettings(
        fill=filling(spec.world, environ, world.secrets),
        root=root,
        secrets=world.secrets,
        visible={**interpreter(), **seen.visible},
        environ=usual_environ(),
        agent_environ=seen.agent.env,
        scenarios=spec.scenarios,
        variables=variables,
        keeping=world.keep,
        told=world.told,
    )


def interpreter() -> dict[str, Path]:
    """This Python and Holdfast itself, as a Python agent and MCP relays need them; nothing of the user's."""
    packages = [*python_site.getsitepackages(), str(Path(holdfast.__file__).parents[1])]
    return present([sys.prefix, sys.base_prefix, *packages], without=("/usr",))


def usual_environ() -> dict[str, str]:
    """The variables that every program in a world has."""
    return {"PATH": f"{Path(sys.executable).parent}:{PATH}"}


async def open_backend(name: str, folder: Path, image: str | None) -> SandboxBackend:
    """The backend of that name, tried on this machine; UserError if there is none, or if it does not work here."""
    opening = plugins.find("sandboxes", name)
    if opening is None:
        raise UserError(
            f"there is no sandbox backend {name!r}", hint=f"there are: {', '.join(plugins.names('sandboxes'))}"
        )
    opened: SandboxBackend = await opening(folder, image)
    return opened


def filling(world: WorldSpec, environ: Mapping[str, str], secrets: Mapping[str, str]) -> Callable[[Trial], WorldSpec]:
    """The world of one trial: its references replaced by values."""
    plain = msgspec.to_builtins(world)

    def fill(trial: Trial) -> WorldSpec:
        def value(part: Any) -> Any:
            if isinstance(part, str):
                return resolve(part, environ, secrets=secrets, params=trial.params)
            if isinstance(part, dict):
                return {key: _part(key, inner) for key, inner in part.items()}
            return [value(inner) for inner in part] if isinstance(part, list | tuple) else part

        def _part(key: str, inner: Any) -> Any:
            if key in _NAMED and isinstance(inner, dict):  # their keys are the user's own words
                return {name: value(text) for name, text in inner.items()}
            return as_written(inner) if key in _AS_WRITTEN else value(inner)

        def as_written(part: Any) -> Any:
            if isinstance(part, str):
                return interpolate(part, trial.params)
            return [as_written(inner) for inner in part] if isinstance(part, list | tuple) else part

        return msgspec.convert(value(plain), WorldSpec)

    return fill


_NAMED = ("env", "headers", "dns_overrides")
_AS_WRITTEN = ("commands", "content", "response", "sql", "wait_for")
"""A dollar there is the shell's, the database's or the mock's own; parameters are filled in."""


def kept_here(backend: SandboxBackend) -> str:
    """One line: how much of what a sandbox promises is kept here, and what is not."""
    missing: dict[str, list[str]] = {}
    for one in backend.isolation:
        if not one.enforced:
            missing.setdefault(one.why, []).append(one.feature)
    held = f"sandbox {backend.name}: {sum(one.enforced for one in backend.isolation)} of {len(backend.isolation)} kept"
    told = "; ".join(f"{', '.join(features)} ({why})" for why, features in missing.items())
    return f"{held}. Not enforced here: {told}" if told else held
