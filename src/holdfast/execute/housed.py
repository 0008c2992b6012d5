"""Opens an agent that runs in a sandbox, with all that its worlds share."""

from __future__ import annotations

import site as python_site
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

import holdfast
from holdfast import plugins
from holdfast.agents.environment import variables
from holdfast.agents.housed import open_housed, placed
from holdfast.errors import UserError
from holdfast.execute.moored import resolved_models
from holdfast.execute.site import Models, Site, Surroundings, rule_urls
from holdfast.execute.surrounded import Surrounded
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.trial import Trial
from holdfast.model.world import Isolation, WorldSpec
from holdfast.planes.harbour import Chart, Harbour
from holdfast.processes import scratch
from holdfast.protocols import SandboxBackend
from holdfast.spec.references import interpolate, resolve
from holdfast.world.keeping import KEPT, Keeping
from holdfast.world.shortcomings import shortcomings
from holdfast.world.strict import refuse_lacking
from holdfast.world.worlds import Order, Worlds

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


async def open_in_world(
    spec: Spec,
    agent: AgentSpec,
    root: Path,
    environ: Mapping[str, str],
    at_once: int,
    models: Models,
    world: Surroundings,
) -> Site:
    """The site of an agent whose references are resolved and that runs in worlds."""
    assert spec.world is not None
    seen = placed(agent, root)
    chart = Chart(
        seen.agent,
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
    harbour = Harbour(chart)
    folder = scratch.make("world", in_memory=True)
    try:
        backend = await _backend(world.backend, folder, spec.world.base)
        lacks = await shortcomings(spec.world, spec.scenarios, backend)
        await _strictly(spec.world, backend, lacks, world.strict)
        order = Order(
            fill=_filling(spec.world, environ, world.secrets),
            root=root,
            secrets=world.secrets,
            visible={**interpreter(), **seen.visible},
            environ={"PATH": f"{Path(sys.executable).parent}:{PATH}"},
            agent_environ=seen.agent.env,
            scenarios=spec.scenarios,
            variables=variables,
            keeping=Keeping(KEPT, models.mask) if world.keep else None,
        )
        worlds = Worlds(order, backend, harbour, folder)
        worlds.shortcomings = lacks
    except BaseException:
        await harbour.close()
        scratch.remove(folder)
        raise
    housed = open_housed(seen, root, spec.scenarios)
    limit = spec.world.resources.concurrency_limit
    slots = at_once if limit is None else min(at_once, limit)
    return Site(spec, Surrounded(housed, worlds, harbour, spec), slots, _notes(backend))


def interpreter() -> dict[str, Path]:
    """This Python and Holdfast itself, as a Python agent and MCP relays need them; nothing of the user's."""
    places = {sys.prefix, sys.base_prefix, *python_site.getsitepackages(), str(Path(holdfast.__file__).parents[1])}
    return {place: Path(place) for place in sorted(places) if not place.startswith("/usr/") and place != "/usr"}


async def _backend(name: str, folder: Path, image: str | None) -> SandboxBackend:
    opening = plugins.find("sandboxes", name)
    if opening is None:
        raise UserError(
            f"there is no sandbox backend {name!r}", hint=f"there are: {', '.join(plugins.names('sandboxes'))}"
        )
    opened: SandboxBackend = await opening(folder, image)
    return opened


async def _strictly(spec: WorldSpec, backend: SandboxBackend, lacks: tuple[Isolation, ...], strict: bool) -> None:
    """Refuses, where the user is strict, what the backend cannot enforce."""
    if not strict:
        return
    try:
        refuse_lacking(spec, (*backend.isolation, *lacks), backend.name)
    except UserError:
        await backend.close()
        raise


def _filling(world: WorldSpec, environ: Mapping[str, str], secrets: Mapping[str, str]) -> Callable[[Trial], WorldSpec]:
    """The world of one trial: its references replaced by values."""
    plain = msgspec.to_builtins(world)

    def fill(trial: Trial) -> WorldSpec:
        def value(part: Any) -> Any:
            if isinstance(part, str):
                return resolve(part, environ, secrets=secrets, params=trial.params)
            if isinstance(part, dict):
                return {key: as_written(inner) if key in _AS_WRITTEN else value(inner) for key, inner in part.items()}
            return [value(inner) for inner in part] if isinstance(part, list | tuple) else part

        def as_written(part: Any) -> Any:
            if isinstance(part, str):
                return interpolate(part, trial.params)
            return [as_written(inner) for inner in part] if isinstance(part, list | tuple) else part

        return msgspec.convert(value(plain), WorldSpec)

    return fill


_AS_WRITTEN = ("commands", "content", "response", "sql", "wait_for")
"""A dollar there is the shell's, the database's or the mock's own; parameters are filled in."""


def _notes(backend: SandboxBackend) -> tuple[str, ...]:
    """One line: how much of what a sandbox promises is kept here, and what is not."""
    missing: dict[str, list[str]] = {}
    for one in backend.isolation:
        if not one.enforced:
            missing.setdefault(one.why, []).append(one.feature)
    held = f"sandbox {backend.name}: {sum(one.enforced for one in backend.isolation)} of {len(backend.isolation)} kept"
    told = "; ".join(f"{', '.join(features)} ({why})" for why, features in missing.items())
    return (f"{held}. Not enforced here: {told}" if told else held,)
