"""Files that a spec names: whether they exist, and problems in those that Holdfast reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import which

from holdfast.errors import SpecError, UserError
from holdfast.reading.file import is_openable
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.spec.explain import report_inner
from holdfast.spec.references import find_names
from holdfast.spec.rules.contract import ContractRules
from holdfast.spec.rules.tools import find_module
from holdfast.spec.sections.agent import AgentSection
from holdfast.spec.sections.file import File
from holdfast.spec.sections.run import ModelEntry
from holdfast.spec.task import iter_users
from holdfast.spec.world import WORLD_KEYS


def find_named_files(reader: Reader, file: File, rules: ContractRules, folder: Path) -> tuple[str, ...]:
    """Return the named files; a missing one is an error, but a module may also be installed."""
    files: dict[str, None] = {}
    for name, node in _iter_named_files(file, rules):
        if find_names(name).has_references:
            continue
        if not os.path.exists(folder / name):  # unlike Path.exists, this accepts names that are too long
            reader.report(node, f"there is no {name[:80]!r} next to the spec", code="missing-file")
        elif not is_openable(folder / name):
            reader.report(node, f"{name[:80]!r} is not a regular file", code="unreadable-file")
        files[name] = None
    for ref in file.agent.code:
        module = find_module(ref.path.partition(":")[0], folder)
        if module is not None:
            files[module.relative_to(folder).as_posix()] = None
    return tuple(files)


def _iter_named_files(file: File, rules: ContractRules) -> Iterator[tuple[str, Node]]:
    for rule in (*rules.all, *file.run_rules):
        if key := rule.traits.file_setting:
            yield str(rule.invariant.settings[key]), rule.settings_at.find(key)
    if isinstance(file.agent.mcp_config, str):
        yield file.agent.mcp_config, file.agent.at.get("mcp_config")
    for name, folder in file.agents.items():
        yield folder, file.at.get("agents").get(name)
    placed = (
        *file.setup.files,
        *file.setup.home_files,
        *(entry for fixture in file.fixtures for entry in fixture.files),
    )
    paths = [
        (file.agent.dir, file.agent.at.get("dir")),
        *((model.script, model.at.get("script")) for model in file.models.values()),
        *((user.script_file, user.at.get("script")) for user in iter_users(file)),
        *((fixture.file, fixture.at.get("file")) for fixture in file.fixtures),
        *((fixture.source, fixture.at.get("source")) for fixture in file.fixtures),
        *((entry.source, entry.at.get("source")) for entry in placed),
        *((session.file, session.at.get("file")) for session in (file.replays.sessions if file.replays else ())),
    ]
    yield from ((name, node) for name, node in paths if name is not None)


def report_file_problems(reader: Reader, file: File, folder: Path, environ: Mapping[str, str]) -> None:
    """Read each such file; missing files are reported elsewhere."""
    for model in file.models.values():
        if (
            model.script is not None
            and not find_names(model.script).has_references
            and is_openable(folder / model.script)
        ):
            _check_script(reader, model, folder / model.script)
    if file.agent.mcp_config is not None:
        _check_mcp_config(reader, file.agent, folder)
    if file.agent.binary is not None and not any(file.at.has(key) for key in WORLD_KEYS):
        _check_binary(reader, file.agent, file.agent.binary, folder, environ)


def _check_script(reader: Reader, model: ModelEntry, path: Path) -> None:
    from holdfast.planes.llm.sources.script_file import load_script

    node = model.at.get("script")
    try:
        load_script(path, label=path.name)
    except SpecError as wrong:
        report_inner(reader, node, path.name, wrong.problems, code="bad-script")
    except UserError as wrong:
        reader.report(node, str(wrong), hint=wrong.hint, code="bad-script")


def _check_mcp_config(reader: Reader, agent: AgentSection, folder: Path) -> None:
    from holdfast.planes.mcp.config import read_config, rewrite_config

    config = agent.mcp_config
    if isinstance(config, str) and (find_names(config).has_references or not is_openable(folder / config)):
        return
    try:
        parsed = read_config(folder / config) if isinstance(config, str) else config
        rewrite_config(parsed or {}, relay=("relay",), environ={}, base_url="http://127.0.0.1")
    except UserError as wrong:
        reader.report(agent.at.get("mcp_config"), str(wrong), hint=wrong.hint, code="bad-mcp-config")


def _check_binary(reader: Reader, agent: AgentSection, binary: str, folder: Path, environ: Mapping[str, str]) -> None:
    """A program given as a path must exist; one found by PATH may be on the machine of the run."""
    if find_names(binary).has_references or "{port}" in binary or not binary.strip():
        return
    node = agent.at.get("binary")
    if os.path.isfile(folder / binary):
        if not os.access(folder / binary, os.X_OK):
            hint = f"chmod +x {binary[:60]}"
            reader.report(node, f"{binary[:60]!r} is not executable", hint=hint, code="missing-file")
    elif os.sep in binary:
        hint = "a path is relative to the spec's folder; a shell command is agent.command"
        reader.report(node, f"there is no {binary[:80]!r} next to the spec", hint=hint, code="missing-file")
    elif which(binary, path=agent.env.get("PATH", environ.get("PATH", os.defpath))) is None:
        reader.warn(node, f"{binary[:60]!r} is neither on PATH here nor next to the spec", code="lint-missing-program")
