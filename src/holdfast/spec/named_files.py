"""Every file that a spec names, relative to its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.reading.file import opens
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.spec.contract import ContractRules
from holdfast.spec.references import names
from holdfast.spec.sections.file import File
from holdfast.spec.task import users
from holdfast.spec.tools import find_module
from holdfast.spec.variants import spot


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
