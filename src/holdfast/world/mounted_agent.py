"""What of the spec's folder a sandboxed agent sees: its own files, and nothing else of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import AgentUnavailable
from holdfast.model.spec import AgentSpec
from holdfast.protocols import Sandbox
from holdfast.world.program_word import program_span, script_of

AGENT = "/agent"
"""Where a sandboxed agent finds its own files."""


class Mounts(Struct, frozen=True):
    """The agent's own files by the path that they have in a sandbox."""

    visible: Mapping[str, Path]

    def within(self, agent: AgentSpec, sandbox: Sandbox) -> AgentSpec:
        """The section with the paths of one sandbox: a backend that cannot place files leaves them where they are."""
        moved = {path: sandbox.inside(path) for path in sorted(self.visible, key=len, reverse=True)}
        if all(path == there for path, there in moved.items()):
            return agent

        def put(text: str) -> str:
            for path, there in moved.items():
                text = there.join(re.split(rf"(?<![\w/.-]){re.escape(path)}(?![\w.-])", text))
            return text

        changes: dict[str, object] = {"args": tuple(map(put, agent.args))}
        changes |= {n: put(t) for n, t in (("command", agent.command), ("binary", agent.binary)) if t is not None}
        return replace(agent, **changes)

    def notes(self, root: Path) -> tuple[str, ...]:
        """A line that says what of the spec's folder was placed, where anything was."""
        placed = [str(path.relative_to(root)) for path in self.visible.values() if path.is_relative_to(root)]
        return (f"of the spec's folder the agent sees {', '.join(placed)}, read-only in {AGENT}",) if placed else ()

    def folder(self, sandbox: Sandbox) -> str:
        """Where a Python agent's modules are found inside."""
        if AGENT in self.visible:
            return sandbox.inside(AGENT)
        first = next(iter(self.visible), None)
        return AGENT if first is None else str(PurePosixPath(sandbox.inside(first)).parent)


NO_MOUNTS = Mounts({})


class MountedAgent(Struct, frozen=True):
    """An agent's section with the paths that hold inside, and what is seen there."""

    agent: AgentSpec
    mounts: Mounts


def mount(agent: AgentSpec, root: Path) -> MountedAgent:
    """Puts `agent.dir`, or the program alone where it lies beside the spec, read-only into /agent."""
    visible: dict[str, Path] = {}
    if agent.dir is not None:
        folder = _inside(root, agent.dir)
        if folder is None or not folder.is_dir():
            raise AgentUnavailable(f"agent.dir {agent.dir!r} is no folder beside the spec", config=True)
        if folder == root.resolve():
            hint = "put the agent's files into a folder of their own"
            raise AgentUnavailable(
                "agent.dir is the spec's own folder: the agent would see its rules", hint=hint, config=True
            )
        visible[AGENT] = folder

    changes: dict[str, object] = {}
    if agent.command is not None:
        at = program_span(agent.command)
        if at is not None:
            start, end = at
            changes["command"] = (
                agent.command[:start] + _moved(agent.command[start:end], root, visible) + agent.command[end:]
            )
    if agent.binary is not None:
        changes |= _binary(agent.binary, agent.args, root, visible)
    if agent.in_python and agent.dir is None:
        visible |= _modules(agent, root)
    return MountedAgent(replace(agent, **changes), Mounts(visible))


def _binary(binary: str, args: tuple[str, ...], root: Path, visible: dict[str, Path]) -> dict[str, object]:
    """The program, or the script that it interprets, as it is found inside; every other argument as written."""
    moved = _moved(binary, root, visible)
    script = script_of(binary, args) if moved == binary else None
    if script is None:
        return {"binary": moved}
    return {"args": (*args[:script], _moved(args[script], root, visible), *args[script + 1 :])}


def _moved(text: str, root: Path, visible: dict[str, Path]) -> str:
    """The path inside of a file that lies beside the spec; any other word as it is."""
    pure = PurePosixPath(text)
    if not text or len(text) > 255 or pure.is_absolute() or ".." in pure.parts:
        return text
    if AGENT in visible:
        return f"{AGENT}/{pure}" if (visible[AGENT] / pure).is_file() else text
    beside = root / pure
    if not beside.is_file():
        return text
    visible[f"{AGENT}/{pure}"] = beside
    return f"{AGENT}/{pure}"


def _modules(agent: AgentSpec, root: Path) -> dict[str, Path]:
    """The modules beside the spec that a Python agent's section names, whole packages too."""
    paths = [agent.endpoint, agent.tool_registry or "", agent.reset_function or ""]
    paths += [tool.path for tool in (*agent.tools, *agent.llm)]
    found = {}
    for name in {path.partition(":")[0].partition(".")[0] for path in paths if path}:
        for place in (root / f"{name}.py", root / name):
            if place.exists():
                found[f"{AGENT}/{place.name}"] = place
    return found


def _inside(root: Path, name: str) -> Path | None:
    folder = (root / name).resolve()
    return folder if folder.is_relative_to(root.resolve()) else None
