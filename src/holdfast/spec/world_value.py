"""The world's sections as one value for the later stages."""

from __future__ import annotations

from holdfast.model import world
from holdfast.reading.fields import convert
from holdfast.reading.file import to_workspace_path
from holdfast.spec.sections import world as written
from holdfast.spec.sections.file import File
from holdfast.spec.world import WORLD_KEYS


def build_world(file: File) -> world.WorldSpec | None:
    """Return the world that the file describes.

    None if it has none of its keys, wants no sandbox and judges no state.
    """
    is_deterministic = any(file.determinism.at.has(key) for key in ("clock", "network_latency", "dns"))
    rules = (*file.invariants, *(file.contract.invariants if file.contract else ()))
    in_sandbox = file.agent.sandbox or file.agent.kind == "snapshot"
    wanted = is_deterministic or in_sandbox or any(rule.traits.reads_state for rule in rules)
    if not wanted and not any(file.at.has(key) for key in WORLD_KEYS):
        return None
    return world.WorldSpec(
        base=file.base,
        setup=_build_setup(file.setup),
        resources=convert(world.Resources, file.resources, timeout_ms=file.resources.timeout),
        secrets=tuple(map(_build_secret, file.secrets)),
        services=tuple(service.spec for service in file.services),
        fixtures=tuple(map(_build_fixture, file.fixtures)),
        network=file.network,
        determinism=convert(
            world.Determinism, file.determinism, network_latency_ms=file.determinism.network_latency or 0
        ),
        audit=file.audit,
        forbidden=file.forbidden,
    )


def _build_placed_file(entry: written.FileEntry) -> world.PlacedFile:
    mode = int(entry.mode, 8) if entry.mode else None
    return convert(world.PlacedFile, entry, path=to_workspace_path(entry.path), mode=mode)


def _build_setup(section: written.SetupSection) -> world.Setup:
    files, home_files = (tuple(map(_build_placed_file, entries)) for entries in (section.files, section.home_files))
    return convert(world.Setup, section, files=files, home_files=home_files)


def _build_secret(entry: written.SecretEntry) -> world.Secret:
    file = None if entry.scope.file is None else to_workspace_path(entry.scope.file)
    return world.Secret(entry.name, entry.from_ or entry.source or "env", entry.scope.env, file)


def _build_fixture(entry: written.FixtureEntry) -> world.Fixture:
    kinds = tuple("null" if kind is None else kind for kind in entry.kinds)  # YAML reads a bare null as nothing
    return convert(
        world.Fixture,
        entry,
        path=to_workspace_path(entry.path or "."),
        files=tuple(map(_build_placed_file, entry.files)),
        rate=world.DRIFT_RATE if entry.rate is None else entry.rate,
        kinds=kinds or world.DRIFT_KINDS,
    )
