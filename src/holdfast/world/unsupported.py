"""Features that a spec requires and this machine or backend lacks: reported, never ignored silently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from holdfast.errors import UserError
from holdfast.model.capabilities import COMMANDS, CPU, DISK, FILES, MEMORY, PIDS, build_missing
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.traits import Disturbed
from holdfast.model.world import Isolation, WorldSpec
from holdfast.plugins import get_fault_traits
from holdfast.protocols.sandbox import SandboxBackend
from holdfast.world.ingress import list_unsupported_ingress
from holdfast.world.world_clock import find_clock_library


async def list_unsupported(
    spec: WorldSpec,
    scenarios: Iterable[Scenario],
    backend: SandboxBackend,
    *,
    agent: AgentSpec | None = None,
    visible: Iterable[str] = (),
) -> tuple[Isolation, ...]:
    """Return every unsupported key of the spec. `visible` are paths of this machine that sandboxes see."""
    features = [*_list_unsupported_keys(spec, backend, agent), *_check_workdir(spec.setup.workdir, backend, visible)]
    if spec.determinism.clock is not None or any("clock" in find_disturbed(one) for one in scenarios):
        library = await find_clock_library()
        features += [library] if isinstance(library, Isolation) else []
    return tuple(features)


def find_disturbed(scenario: Scenario) -> frozenset[Disturbed]:
    """Return the targets of a scenario's world faults that the sandbox must know from the start."""
    worldly = (get_fault_traits(one.plane, one.mode).disturbs for one in scenario.injections if one.plane == "world")
    return frozenset(part for part in worldly if part is not None)


def _list_unsupported_keys(spec: WorldSpec, backend: SandboxBackend, agent: AgentSpec | None) -> Iterator[Isolation]:
    isolates, name = backend.traits.isolates, backend.name
    if agent is not None and backend.traits.image and agent.nested_sandbox:
        yield build_missing("container-nested")
    if agent is not None and backend.traits.image and agent.programs:
        yield build_missing("container-programs", programs=", ".join(agent.programs))
    if spec.base is not None and not backend.traits.image:
        yield build_missing("image-ignored", image=spec.base, backend=name)
    if spec.setup.packages:
        yield build_missing("packages-ignored", packages=", ".join(spec.setup.packages), backend=name)
    yield from list_unsupported_ingress(spec.network, shared=not isolates)
    if spec.determinism.dns == "real":
        yield build_missing("dns-real")
    if spec.services and not isolates:
        yield build_missing("services-unnamed")
    if spec.forbidden.http_except is not None and not isolates:
        yield build_missing("http-unproxied")
    if spec.network.dns_overrides and not isolates:
        yield build_missing("names-unproxied")


def _check_workdir(path: str | None, backend: SandboxBackend, visible: Iterable[str]) -> Iterator[Isolation]:
    """Yield the additional path of the workspace, if it cannot be created."""
    if path is None:
        return
    at = PurePosixPath(path)
    clashes = sorted(one for one in visible if at.is_relative_to(one) or PurePosixPath(one).is_relative_to(at))
    if not backend.traits.isolates:
        yield build_missing("workdir-missing", backend=backend.name, path=path)
    elif clashes:
        yield build_missing("workdir-hidden", shown=clashes[0], path=path)


def select_lacking(spec: WorldSpec, isolation: Iterable[Isolation]) -> list[Isolation]:
    """Return what is not enforced, without limits and logs that the spec does not ask for."""
    unasked = {
        MEMORY: spec.resources.memory is None,
        CPU: spec.resources.cpu is None,
        DISK: spec.resources.disk is None,
        PIDS: spec.resources.pids is None,
        COMMANDS: not spec.audit.commands,
        FILES: not spec.audit.file_writes,
    }
    return [one for one in isolation if not one.enforced and not unasked.get(one.feature, False)]


def refuse_lacking(spec: WorldSpec, isolation: Iterable[Isolation], backend: str) -> None:
    """Raise UserError that names every feature that cannot be enforced."""
    missing = select_lacking(spec, isolation)
    if missing:
        features = "; ".join(f"{one.feature} ({one.why})" if one.why else one.feature for one in missing)
        hint = "leave --strict-world out, use another --backend, or do not ask for it"
        raise UserError(f"the {backend} backend cannot enforce here: {features}", code="world-not-enforced", hint=hint)
