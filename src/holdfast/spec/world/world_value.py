"""The world's sections as the one value that everything after the spec reads."""

from __future__ import annotations

from holdfast.model import world
from holdfast.reading.file import in_workspace
from holdfast.spec.sections import world as written
from holdfast.spec.sections.file import File
from holdfast.spec.world.world import WORLD_KEYS


def world_spec(file: File) -> world.WorldSpec | None:
    """The world that the file asks for; None where it has none of its keys, wants no sandbox and judges no state."""
    held = file.determinism is not None and any(
        file.determinism.at.has(key) for key in ("clock", "network_latency", "dns")
    )
    rules = (*file.invariants, *(file.contract.invariants if file.contract else ()))
    boxed = file.agent.sandbox or file.agent.kind == "snapshot"
    asked = held or boxed or any(rule.traits.reads_state for rule in rules)
    if not asked and not any(file.at.has(key) for key in WORLD_KEYS):
        return None
    return world.WorldSpec(
        base=file.base,
        setup=_setup(file.setup),
        resources=_resources(file.resources),
        secrets=tuple(map(_secret, file.secrets)),
        services=tuple(service.spec for service in file.services),
        fixtures=tuple(map(_fixture, file.fixtures)),
        network=_network(file.network),
        determinism=_determinism(file.determinism),
        audit=_audit(file.audit),
        forbidden=_forbidden(file.forbidden),
    )


def _placed(entry: written.FileEntry) -> world.PlacedFile:
    return world.PlacedFile(
        in_workspace(entry.path), entry.content, entry.source, int(entry.mode, 8) if entry.mode else None
    )


def _setup(section: written.SetupSection | None) -> world.Setup:
    if section is None:
        return world.Setup()
    return world.Setup(
        packages=section.packages,
        commands=section.commands,
        files=tuple(map(_placed, section.files)),
        env=section.env,
        home_files=tuple(map(_placed, section.home_files)),
        workdir=section.workdir,
    )


def _resources(section: written.ResourcesSection | None) -> world.Resources:
    if section is None:
        return world.Resources()
    return world.Resources(
        section.timeout,
        section.memory,
        section.cpu,
        section.disk,
        section.pids,
        section.concurrency_limit,
        section.labels,
    )


def _secret(entry: written.SecretEntry) -> world.Secret:
    file = None if entry.scope.file is None else in_workspace(entry.scope.file)
    return world.Secret(entry.name, entry.from_ or entry.source or "env", entry.scope.env, file)


def _fixture(entry: written.FixtureEntry) -> world.Fixture:
    kinds = tuple("null" if kind is None else kind for kind in entry.kinds)  # YAML reads a bare null as nothing
    return world.Fixture(
        type=entry.type,
        service=entry.service,
        sql=entry.sql,
        file=entry.file,
        source=entry.source,
        path=in_workspace(entry.path or "."),
        files=tuple(map(_placed, entry.files)),
        url=entry.url,
        branch=entry.branch,
        depth=entry.depth,
        table=entry.table,
        rate=world.DRIFT_RATE if entry.rate is None else entry.rate,
        kinds=kinds or world.DRIFT_KINDS,
    )


def _network(section: written.NetworkSection | None) -> world.Network:
    if section is None:
        return world.Network()
    return world.Network(
        egress=section.egress.default,
        allow=section.egress.allow,
        ingress=section.ingress.default,
        ways_in=tuple(world.WayIn(rule.from_, rule.to_port) for rule in section.ingress.allow),
        dns_overrides=section.dns_overrides,
    )


def _determinism(section: written.DeterminismSection | None) -> world.Determinism:
    if section is None:
        return world.Determinism()
    return world.Determinism(section.clock, section.network_latency or 0, section.dns)


def _audit(section: written.AuditSection | None) -> world.Audited:
    if section is None:
        return world.Audited()
    return world.Audited(section.commands, section.file_writes, section.db_writes, section.http_calls)


def _forbidden(section: written.ForbiddenSection | None) -> world.Forbidden:
    if section is None:
        return world.Forbidden()
    return world.Forbidden(
        db_writes_outside=section.db_writes_outside,
        http_except=section.http_except,
        secrets_in_logs=section.secrets_in_logs == "deny",
        file_writes_outside=section.file_writes_outside,
    )
