"""Files beside a spec that Holdfast itself reads: scripted models and MCP configurations. What is wrong in them is told
with the spec's own errors."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import SpecError, UserError
from holdfast.spec.reader import Reader
from holdfast.spec.references import names
from holdfast.spec.sections.agent import AgentSection
from holdfast.spec.sections.file import File


def beside_problems(reader: Reader, file: File, folder: Path) -> None:
    """Reads each such file that is there; one that is missing is reported elsewhere."""
    for name, model in file.models.items():
        if model.script is not None and not names(model.script).any and (folder / model.script).is_file():
            _script(reader, file, name, folder / model.script)
    if file.agent.mcp_config is not None:
        _mcp_config(reader, file.agent, folder)


def _script(reader: Reader, file: File, name: str, path: Path) -> None:
    from holdfast.planes.llm.script_file import load

    node, where = file.models[name].at.get("script"), f"models.{name}.script"
    try:
        load(path, shown=path.name)
    except SpecError as wrong:
        for problem in wrong.problems:
            place = f"{path.name}:{problem.line}:{problem.column} {problem.path}".rstrip()
            reader.error(node, where, f"{place}: {problem.message}", hint=problem.hint, code="bad-script")
    except UserError as wrong:
        reader.error(node, where, str(wrong), hint=wrong.hint, code="bad-script")


def _mcp_config(reader: Reader, agent: AgentSection, folder: Path) -> None:
    from holdfast.planes.mcp.config import read, rewrite

    config = agent.mcp_config
    if isinstance(config, str) and (names(config).any or not (folder / config).is_file()):
        return
    try:
        given = read(folder / config) if isinstance(config, str) else config
        rewrite(given or {}, relay=("relay",), environ={}, base_url="http://127.0.0.1")
    except UserError as wrong:
        reader.error(agent.at.get("mcp_config"), "agent.mcp_config", str(wrong), hint=wrong.hint, code="bad-mcp-config")
