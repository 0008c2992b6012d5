"""Files that a spec names: which they are, whether they are there, and what is wrong in those that Holdfast reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast.errors import SpecError, UserError
from holdfast.reading.file import opens
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.spec.references import names
from holdfast.spec.rules.contract import ContractRules
from holdfast.spec.rules.tools import find_module
from holdfast.spec.rules.variants import spot
from holdfast.spec.sections.agent import AgentSection
from holdfast.spec.sections.file import File
from holdfast.spec.task import users
from holdfast.spec.world.world import WORLD_KEYS


def named_files(reader: Reader, file: File, rules: ContractRules, folder: Path) -> tuple[str, ...]:
    """The files; one that is named and not there is an error, a module may also be installed."""
    found: dict[str, None] = {}
    for name, node, path in _named(file, rules):
        if names(name).any:
            continue
        if not os.path.exists(folder / name):  # unlike Path.exists: also of a name that is too long
            message = f"there is no {name[:80]!r} beside the spec"
            reader.error(node, path, message, code="missing-file")
        elif not opens(folder / name):
            reader.error(node, path, f"{name[:80]!r} is not a regular file", code="unreadable-file")
        found[name] = None
    for ref in file.agent.code:
        module = find_module(ref.path.partition(":")[0], folder)
        if module is not None:
            found[module.relative_to(folder).as_posix()] = None
    return tuple(found)


def _named(file: File, rules: ContractRules) -> Iterator[tuple[str, Node, str]]:
    for rule in (*rules.all, *file.run_rules):
        if key := rule.traits.file_setting:
            node, path = spot(rule.settings_at, rule.settings_path, key)
            yield str(rule.invariant.settings[key]), node, path
    if isinstance(file.agent.mcp_config, str):
        yield file.agent.mcp_config, file.agent.at.get("mcp_config"), "agent.mcp_config"
    if file.agent.dir is not None:
        yield file.agent.dir, file.agent.at.get("dir"), "agent.dir"
    for name, model in file.models.items():
        if model.script is not None:
            yield model.script, model.at.get("script"), f"models.{name}.script"
    for path, user in users(file):
        if user.script_file is not None:
            yield user.script_file, user.at.get("script"), f"{path}.script"
    for name, folder in file.agents.items():
        yield folder, file.at.get("agents").get(name), f"agents.{name}"
    yield from _data(file)


def _data(file: File) -> Iterator[tuple[str, Node, str]]:
    """Fixtures, placed files and recorded sessions."""
    setup = file.setup
    groups = [("setup.files", setup.files), ("setup.home_files", setup.home_files)] if setup else []
    for index, fixture in enumerate(file.fixtures):
        path = f"fixtures[{index}]"
        groups.append((f"{path}.files", fixture.files))
        if fixture.file is not None:
            yield fixture.file, fixture.at.get("file"), f"{path}.file"
        if fixture.source is not None:
            yield fixture.source, fixture.at.get("source"), f"{path}.source"
    for path, entries in groups:
        for index, entry in enumerate(entries):
            if entry.source is not None:
                yield entry.source, entry.at.get("source"), f"{path}[{index}].source"
    for index, session in enumerate(file.replays.sessions if file.replays else ()):
        if session.file is not None:
            yield session.file, session.at.get("file"), f"replays.sessions[{index}].file"


def beside_problems(reader: Reader, file: File, folder: Path, environ: Mapping[str, str]) -> None:
    """Reads each such file that is there; one that is missing, or none, is reported elsewhere."""
    for name, model in file.models.items():
        if model.script is not None and not names(model.script).any and opens(folder / model.script):
            _script(reader, file, name, folder / model.script)
    if file.agent.mcp_config is not None:
        _mcp_config(reader, file.agent, folder)
    if file.agent.binary is not None and not any(file.at.has(key) for key in WORLD_KEYS):
        _binary(reader, file.agent, file.agent.binary, folder, environ)


def _script(reader: Reader, file: File, name: str, path: Path) -> None:
    from holdfast.planes.llm.sources.script_file import load

    node, where = file.models[name].at.get("script"), f"models.{name}.script"
    try:
        load(path, shown=path.name)
    except SpecError as wrong:
        for problem in wrong.problems:
            spot = f":{problem.line}:{problem.column}" if problem.line else ""
            place = f"{path.name}{spot} {problem.path}".rstrip()
            reader.error(node, where, f"{place}: {problem.message}", hint=problem.hint, code="bad-script")
    except UserError as wrong:
        reader.error(node, where, str(wrong), hint=wrong.hint, code="bad-script")


def _mcp_config(reader: Reader, agent: AgentSection, folder: Path) -> None:
    from holdfast.planes.mcp.config import read, rewrite

    config = agent.mcp_config
    if isinstance(config, str) and (names(config).any or not opens(folder / config)):
        return
    try:
        given = read(folder / config) if isinstance(config, str) else config
        rewrite(given or {}, relay=("relay",), environ={}, base_url="http://127.0.0.1")
    except UserError as wrong:
        reader.error(agent.at.get("mcp_config"), "agent.mcp_config", str(wrong), hint=wrong.hint, code="bad-mcp-config")


def _binary(reader: Reader, agent: AgentSection, binary: str, folder: Path, environ: Mapping[str, str]) -> None:
    """A program beside the spec must be there; one that PATH is to find may be found where the run is."""
    if names(binary).any or "{port}" in binary or not binary.strip():
        return
    node, path, beside = agent.at.get("binary"), "agent.binary", folder / binary
    if os.path.isfile(beside):
        if not os.access(beside, os.X_OK):
            hint = f"chmod +x {binary[:60]}"
            reader.error(node, path, f"{binary[:60]!r} is not executable", hint=hint, code="missing-file")
    elif os.sep in binary:
        hint = "a path is relative to the spec's folder; a shell command is agent.command"
        reader.error(node, path, f"there is no {binary[:80]!r} beside the spec", hint=hint, code="missing-file")
    elif not _on_path(binary, agent.env.get("PATH", environ.get("PATH", os.defpath))):
        message = f"{binary[:60]!r} is not on PATH here, and not beside the spec"
        reader.warn(node, path, message, code="lint-missing-program")


def _on_path(binary: str, path: str) -> bool:
    from shutil import which

    return which(binary, path=path) is not None
