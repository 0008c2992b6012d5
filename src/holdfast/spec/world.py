"""Checks the sections of the world for conflicting and missing keys, and builds the world as one value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import asdict

from holdfast.model import world
from holdfast.model.traits import CheckTraits, ServiceRead
from holdfast.model.world import CONTAINER, EXTERNAL
from holdfast.plugins import BUILT_IN
from holdfast.protocols.check import TableCheck
from holdfast.reading.fields import convert
from holdfast.reading.file import can_be_workdir, find_path_problem, read_file, to_workspace_path
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.words import suggest_name
from holdfast.service_kinds import find_by_url, format_recorders, get_protocol_traits, get_traits, get_url
from holdfast.spec.references import REFERENCE, find_names
from holdfast.spec.rules.fault_entry import FaultEntry
from holdfast.spec.rules.rules import RuleEntry
from holdfast.spec.sections import world as written
from holdfast.spec.sections.file import File
from holdfast.spec.sections.world import FixtureEntry, ServiceEntry
from holdfast.spec.shell_places import IN_SETUP_ENV, report_unquotable

WORLD_KEYS = ("base", "setup", "resources", "secrets", "services", "fixtures", "network", "audit", "forbidden")
_NEEDS: dict[str, tuple[str, ...]] = {
    "sql": ("service",),
    "directory": ("source",),
    "files": ("files",),
    "git_repo": ("url",),
    "drift": ("service", "table"),
}
_TAKES: dict[str, tuple[str, ...]] = {
    "sql": ("service", "sql", "file"),
    "directory": ("source", "path"),
    "files": ("files",),
    "git_repo": ("url", "branch", "depth", "path"),
    "drift": ("service", "table", "rate", "kinds"),
}
_SQL = ("postgres", "mysql")
_OURS = (None, CONTAINER, EXTERNAL, *BUILT_IN["services"])
"""Service kinds that speak SQL only if their wire protocol does; None is an unknown URL."""
_AUDITED = {
    "db_writes_outside": "db_writes",
    "http_except": "http_calls",
    "file_writes_outside": "file_writes",
}


def report_world_problems(reader: Reader, file: File, rules: Iterable[RuleEntry], faults: Iterable[FaultEntry]) -> None:
    """Report unknown names, and keys that need another key."""
    reader.report_duplicates(((service.name, service.at.get("name")) for service in file.services), "name")
    for fixture in file.fixtures:
        _check_fixture(reader, file, fixture)
    _check_shell_params(reader, file)
    _check_placed_files(reader, file)
    _check_workdir(reader, file)
    _check_forbidden(reader, file)
    _check_secrets(reader, file)
    _check_clock(reader, file)
    if reader.has_error("services"):
        return
    for host, name in file.network.dns_overrides.items():
        _find_service(reader, file, name, file.at.get("network").get("dns_overrides").get(host))
    for rule in rules:
        _check_rule_services(reader, file, rule)
        if key := rule.traits.shell_setting:
            node = rule.settings_at.get(key)
            report_unquotable(reader, node, str(rule.invariant.settings[key]), IN_SETUP_ENV)
    for fault in faults:
        if fault.injection.plane == "service":
            _find_service(reader, file, fault.injection.target, fault.at.get("service"))


def _check_shell_params(reader: Reader, file: File) -> None:
    for node in file.setup.at.get("commands").items:
        report_unquotable(reader, node, node.text, IN_SETUP_ENV)
    for service in file.services:
        wait_for = service.spec.wait_for or ""
        report_unquotable(reader, service.at.get("wait_for"), wait_for, "move the reference out of it")


def _check_secrets(reader: Reader, file: File) -> None:
    secret_names = (
        (secret.name, secret.at.get("name") if secret.at.has("name") else secret.at) for secret in file.secrets
    )
    reader.report_duplicates(secret_names, "name")
    for secret in file.secrets:
        if secret.scope.file is not None:
            _check_path(reader, secret.scope.file, secret.at.find("scope.file"))
        if secret.source is not None and secret.from_ is not None:
            reader.report_conflict(secret.at.get_key("from"), "source and from cannot be combined")


def _check_clock(reader: Reader, file: File) -> None:
    text = file.determinism.clock
    if text is None or re.search(REFERENCE, text):
        return
    try:
        datetime.fromisoformat(text)
    except ValueError:
        message = f"expected a moment such as 2026-01-01T00:00:00Z, found {text[:60]!r}"
        reader.report(file.determinism.at.get("clock"), message, code="bad-setting")


def _check_fixture(reader: Reader, file: File, fixture: FixtureEntry) -> None:
    at = fixture.at
    for key in _NEEDS[fixture.type]:
        if not at.has(key):
            reader.report_missing(at, key, f"missing: {fixture.type} needs it")
    for key in at.pairs:
        if key != "type" and key not in _TAKES[fixture.type]:
            hint = f"{fixture.type} takes {', '.join(_TAKES[fixture.type])}"
            reader.report(at.get_key(key), f"is not a key of {fixture.type}", hint=hint, code="unknown-key")
    if fixture.type == "sql" and (fixture.sql is None) == (fixture.file is None):
        reader.report(at, "needs one of sql, file", code="missing-key")
    if fixture.path is not None:
        _check_path(reader, fixture.path, at.get("path"))
    if fixture.service is not None and not reader.has_error("services"):
        _find_service(reader, file, fixture.service, at.get("service"))


def _check_path(reader: Reader, written: str, node: Node, folder: str = "the workspace") -> None:
    """Report a path that leaves the workspace, or the home."""
    for _, message in find_path_problem(written if folder == "the home" else to_workspace_path(written), folder):
        reader.report(node, message, code="bad-setting")


def _check_placed_files(reader: Reader, file: File) -> None:
    placed = (*file.setup.files, *(entry for fixture in file.fixtures for entry in fixture.files))
    folders = [(entry, "the home") for entry in file.setup.home_files] + [(entry, "the workspace") for entry in placed]
    for entry, folder in folders:
        _check_path(reader, entry.path, entry.at.get("path"), folder)
        if (entry.content is None) == (entry.source is None):
            reader.report(entry.at, "needs one of content, source", code="missing-key")


def _check_workdir(reader: Reader, file: File) -> None:
    """Report a workdir that every sandbox already uses for something else."""
    path = file.setup.workdir
    if path is None or can_be_workdir(path):
        return
    message = f"expected an absolute path that is free in a sandbox, such as /app, found {path[:60]!r}"
    reader.report(file.setup.at.get("workdir"), message, code="bad-setting")


def can_be_database(service: ServiceEntry) -> bool:
    """Return whether the service may accept SQL: its kind or URL is unknown, or its protocol is PostgreSQL or MySQL."""
    spec = service.spec
    if spec.kind == EXTERNAL:
        return (
            bool(find_names(get_url(spec)).has_references)
            or get_protocol_traits(spec).wire in _SQL
            or find_by_url(get_url(spec)) not in _OURS
        )
    return spec.kind not in _OURS or get_protocol_traits(spec).wire in _SQL


def _check_unaudited_writes(reader: Reader, file: File) -> None:
    """Report a rule on table writes if Holdfast can see the writes of no service."""
    rule = "db_writes_outside"
    databases = [service for service in file.services if not get_traits(service.spec).records]
    if not file.at.get("forbidden").has(rule) or reader.has_error("services"):
        return
    if databases and not any(map(can_be_database, databases)):
        message = f"cannot be checked: Holdfast sees writes of PostgreSQL and MySQL, and {databases[0].name} is neither"
        reader.report_conflict(file.at.get("forbidden").get_key(rule), message)


def _check_forbidden(reader: Reader, file: File) -> None:
    _check_unaudited_writes(reader, file)
    switched = asdict(file.audit)
    for rule, audit in _AUDITED.items():
        if file.at.get("forbidden").has(rule) and not switched[audit]:
            reader.report_conflict(file.at.get("forbidden").get_key(rule), f"cannot be checked: audit.{audit} is false")


def _find_service(reader: Reader, file: File, name: str, node: Node) -> ServiceEntry | None:
    for service in file.services:
        if service.name == name:
            return service
    hint = suggest_name(name, [s.name for s in file.services], label="services") or "the file has no services"
    reader.report(node, f"no service is called {name[:60]!r}", hint=hint, code="unknown-service")
    return None


def _check_rule_services(reader: Reader, file: File, rule: RuleEntry) -> None:
    traits = rule.traits
    for read in traits.services:
        node = rule.settings_at.find(read.setting)
        service = _find_service(reader, file, read.name, node)
        message = _explain_unfit(service, rule.invariant.check, read) if service is not None else ""
        if message:
            reader.report_conflict(node, message)
    _check_unaudited_actions(reader, file, rule, traits)


def _explain_unfit(service: ServiceEntry, kind: str, read: ServiceRead) -> str:
    """Return why the check cannot read this service; empty if it can."""
    mock = get_traits(service.spec).records
    if read.needs == "recorder":
        records = mock and service.spec.settings.get("record")
        return (
            "" if records else f"{service.name} records nothing: it needs type: {format_recorders()} and record: true"
        )
    if mock:
        return f"{kind} needs a database, and {service.name} is a mock"
    return "" if can_be_database(service) else f"{kind} needs PostgreSQL or MySQL, and {service.name} is neither"


def _check_unaudited_actions(reader: Reader, file: File, rule: RuleEntry, traits: CheckTraits) -> None:
    """Report rules on actions that the audit log does not record."""
    audit = asdict(file.audit)
    for setting, name in traits.audits:
        if not audit[name]:
            node = rule.settings_at.find(setting)
            reader.report_conflict(node, f"cannot be checked: audit.{name} is false")


READ = 1_000_000
"""Characters of a file of statements that are examined."""
_NAMED = ("MYSQL_DATABASE", "MARIADB_DATABASE")


def report_database_problems(reader: Reader, file: File, rules: Iterable[RuleEntry], folder: Path) -> None:
    """Report tables without a database name if the service has no default database."""
    # MySQL without a default database rejects unqualified table names, but only at the run, after the services have
    # started. The file alone shows it, so it is reported before.
    bare = {service.name: (n, service) for n, service in enumerate(file.services) if _is_without_database(service)}
    if not bare or reader.has_error("services", "fixtures"):
        return
    for place, name, table in (*_iter_fixture_tables(file, bare, folder), *_iter_rule_tables(rules, bare)):
        index, service = bare[name]
        what = "MYSQL_DATABASE: app in its env" if service.type == CONTAINER else "its name at the end of the url"
        message = f"the table {table[:60]!r} is in no database: {name} has none unless it is named"
        hint = f"give services[{index}] (line {service.at.line}) {what}, or write app.{table[:60]}"
        reader.report(place, message, hint=hint, code="no-database")


def _is_without_database(service: ServiceEntry) -> bool:
    spec = service.spec
    if spec.kind != EXTERNAL:
        return get_protocol_traits(spec).wire == "mysql" and not any(spec.env.get(name) for name in _NAMED)
    url = get_url(spec)
    if get_protocol_traits(spec).wire != "mysql" or find_names(url).has_references:
        return False
    try:
        return not urlsplit(url).path.strip("/")
    except ValueError:
        return False


_Tables = Iterator[tuple[Node, str, str]]
"""The node, the service, the table."""


def _iter_fixture_tables(file: File, bare: Collection[str], folder: Path) -> _Tables:
    for fixture in file.fixtures:
        if fixture.service is None or fixture.service not in bare:
            continue
        # The lexer compiles large patterns at import, and few specs have such fixtures.
        from holdfast.sqltext.bare_table import find_bare_table

        key = "table" if fixture.type == "drift" else "sql" if fixture.sql is not None else "file"
        table = (
            fixture.table
            if fixture.type == "drift"
            else find_bare_table(_read_statements(fixture.sql, fixture.file, folder))
        )
        if table and "." not in table:
            yield fixture.at.get(key), fixture.service, table


def _read_statements(sql: str | None, file: str | None, folder: Path) -> str:
    if sql is not None or file is None or find_names(file).has_references:
        return sql or ""
    text = read_file(folder / file).text  # an unreadable file is reported elsewhere
    return text if len(text) <= READ else text[:READ].rpartition(";")[0]


def _iter_rule_tables(rules: Iterable[RuleEntry], bare: Collection[str]) -> _Tables:
    for rule in rules:
        service = next((read.name for read in rule.traits.services if read.name in bare), "")
        for setting, table in rule.check.tables_read() if service and isinstance(rule.check, TableCheck) else ():
            yield rule.settings_at.find(setting), service, table


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
