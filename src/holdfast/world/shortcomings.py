"""What a spec asks of its world and this machine or backend cannot do: told, never passed over in silence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import PurePosixPath

from holdfast.errors import UserError
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.traits import Disturbed
from holdfast.model.world import Isolation, WorldSpec
from holdfast.plugins import fault_traits
from holdfast.protocols.sandbox import SandboxBackend
from holdfast.world.ingress import shortcoming

WORKDIR = "setup.workdir"


async def shortcomings(
    spec: WorldSpec,
    scenarios: Iterable[Scenario],
    backend: SandboxBackend,
    *,
    agent: AgentSpec | None = None,
    shown: Iterable[str] = (),
) -> tuple[Isolation, ...]:
    """Every key of the spec that is not done here, and why. `shown`: paths of this machine that every sandbox sees."""
    return (
        *(_in_container(agent) if agent is not None and backend.traits.image else ()),
        *_of_spec(spec, backend),
        *_workdir(spec.setup.workdir, backend, shown),
        *[one async for one in _clock(spec, scenarios)],
    )


def _in_container(agent: AgentSpec) -> Iterator[Isolation]:
    if agent.nested_sandbox:
        yield Isolation("agent.nested_sandbox", False, "the engine's filter refuses namespaces in a container")
    if agent.programs:
        why = "a container has the programs of its image alone; put them into it"
        yield Isolation("agent.programs", False, f"{', '.join(agent.programs)}: {why}")


def disturbed(scenario: Scenario) -> frozenset[Disturbed]:
    """What the world faults of a scenario disturb, as far as the sandbox must know from the start."""
    worldly = (fault_traits(one.plane, one.mode).disturbs for one in scenario.injections if one.plane == "world")
    return frozenset(part for part in worldly if part is not None)


def _of_spec(spec: WorldSpec, backend: SandboxBackend) -> Iterator[Isolation]:
    if spec.base is not None and not backend.traits.image:
        yield Isolation(
            "base", False, f"{spec.base} is an image; the {backend.name} backend uses this machine's programs"
        )
    if spec.setup.packages:
        why = f"the {backend.name} backend installs nothing; install them on this machine, or put them into an image"
        yield Isolation("setup.packages", False, f"{', '.join(spec.setup.packages)}: {why}")
    yield from shortcoming(spec.network, shared=not backend.traits.isolates)
    if spec.determinism.dns == "real":
        why = "inside, only services have addresses; other names are resolved by the proxy"
        yield Isolation("determinism.dns", False, why)
    if not backend.traits.isolates:
        yield from _without_network(spec)


def _workdir(path: str | None, backend: SandboxBackend, shown: Iterable[str]) -> Iterator[Isolation]:
    """The second path of the workspace, where nothing can be put there."""
    if path is None:
        return
    at = PurePosixPath(path)
    taken = sorted(one for one in shown if at.is_relative_to(one) or PurePosixPath(one).is_relative_to(at))
    if not backend.traits.isolates:
        yield Isolation(WORKDIR, False, f"the {backend.name} backend has no folders of its own: nothing is at {path}")
    elif taken:
        yield Isolation(WORKDIR, False, f"{taken[0]} of this machine is shown there, so {path} is not the workspace")


def _without_network(spec: WorldSpec) -> Iterator[Isolation]:
    """There is no network of the agent's own, so no names in it."""
    if spec.services:
        why = "services have no names here; their variables (DB_HOST, DB_PORT, DATABASE_URL) say where they are"
        yield Isolation("service names", False, why)
    if spec.forbidden.http_except is not None:
        yield Isolation("http audit", False, "calls that go past the proxy are not seen")
    if spec.network.dns_overrides:
        yield Isolation("network.dns_overrides", False, "they hold only for programs that use the proxy")


async def _clock(spec: WorldSpec, scenarios: Iterable[Scenario]) -> AsyncIterator[Isolation]:
    if spec.determinism.clock is None and not any("clock" in disturbed(one) for one in scenarios):
        return
    from holdfast.world.world_clock import clock_library

    library = await clock_library()
    if isinstance(library, Isolation):
        yield library


def lacking(spec: WorldSpec, isolation: Iterable[Isolation]) -> list[Isolation]:
    """The promises that are not kept, without limits and logs that nobody asked for."""
    unasked = {
        "memory limit": spec.resources.memory is None,
        "cpu limit": spec.resources.cpu is None,
        "disk limit": spec.resources.disk is None,
        "pids limit": spec.resources.pids is None,
        "command audit": not spec.audit.commands,
        "file audit": not spec.audit.file_writes,
    }
    return [one for one in isolation if not one.enforced and not unasked.get(one.feature, False)]


def refuse_lacking(spec: WorldSpec, isolation: Iterable[Isolation], backend: str) -> None:
    """Raises UserError that names every promise which cannot be kept."""
    missing = lacking(spec, isolation)
    if missing:
        named = "; ".join(f"{one.feature} ({one.why})" if one.why else one.feature for one in missing)
        hint = "leave --strict-world out, use another --backend, or do not ask for it"
        raise UserError(f"the {backend} backend cannot enforce here: {named}", code="world-not-enforced", hint=hint)
