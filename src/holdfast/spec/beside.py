"""Files beside a spec that Holdfast itself reads: scripted models and MCP configurations. What is wrong in them is told
with the spec's own errors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import SpecError, UserError
from holdfast.reading.file import opens
from holdfast.reading.reader import Reader
from holdfast.spec.references import names
from holdfast.spec.sections.agent import AgentSection
from holdfast.spec.sections.file import File
from holdfast.spec.world import WORLD_KEYS


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
