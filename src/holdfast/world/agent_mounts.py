"""Mounts the agent's own files into its sandbox, and nothing else from the spec's folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import AgentMisconfigured, AgentUnavailable
from holdfast.model.spec import AgentSpec
from holdfast.processes.startable import make_install_hint
from holdfast.protocols.sandbox import Sandbox
from holdfast.reading.program_word import ProgramWord, find_program_calls, find_program_words, find_script
from holdfast.world.program_search import ProgramSearch
from holdfast.world.visible_programs import NO_PROGRAMS, ProgramFiles, VisiblePrograms

AGENT = "/agent"
"""The path of the agent's own files in a sandbox."""


class Mounts(Struct, frozen=True):
    """The agent's own files, by their paths in a sandbox."""

    visible: Mapping[str, Path]
    agent_dir: str = ""
    """The path of `agent.dir` inside the sandbox; empty if the spec sets none."""

    def map_section(self, agent: AgentSpec, sandbox: Sandbox) -> AgentSpec:
        """Return the agent's section with the paths of one sandbox.

        A backend that cannot mount files keeps the original paths.
        """
        # Longest first: a file within another visible folder must not be replaced by that folder's path.
        moved = {path: sandbox.inside(path) for path in sorted(self.visible, key=len, reverse=True)}
        if all(path == inside for path, inside in moved.items()):
            return agent

        def map_text(text: str) -> str:
            for path, inside in moved.items():
                text = inside.join(re.split(rf"(?<![\w/.-]){re.escape(path)}(?![\w.-])", text))
            return text

        return agent.map_texts(map_text, "args", "command", "binary")

    def list_notes(self, root: Path) -> tuple[str, ...]:
        """Return a note that lists what was mounted; empty if nothing was."""
        if self.agent_dir and self.agent_dir != AGENT:
            return (f"the agent sees {self.agent_dir}, read-only",)
        shown_paths = [str(path.relative_to(root)) for path in self.visible.values() if path.is_relative_to(root)]
        return (
            (f"of the spec's folder the agent sees {', '.join(shown_paths)}, read-only in {AGENT}",)
            if shown_paths
            else ()
        )

    def find_module_folder(self, sandbox: Sandbox) -> str:
        """Return the folder inside the sandbox from which a Python agent's modules are imported."""
        if self.agent_dir:
            return sandbox.inside(self.agent_dir)
        first = next(iter(self.visible), None)
        return AGENT if first is None else str(PurePosixPath(sandbox.inside(first)).parent)


NO_MOUNTS = Mounts({})


class MountedAgent(Struct, frozen=True):
    """An agent's section with its paths inside the sandbox, and the mounts."""

    agent: AgentSpec
    mounts: Mounts
    programs: VisiblePrograms = NO_PROGRAMS


def mount(agent: AgentSpec, root: Path, search: ProgramSearch | None = None) -> MountedAgent:
    """Mount `agent.dir`, or only the program if it is next to the spec, read-only at /agent.

    With a `search`, programs elsewhere on this machine are mounted, too.
    """
    files = AgentFiles(agent, root, search)
    changes: dict[str, object] = {}
    if agent.command is not None:
        changes["command"] = files.map_command(agent.command)
    if agent.binary is not None:
        changes |= files.map_binary(agent.binary, agent.args)
    if agent.is_python and agent.dir is None:
        files.visible |= _find_modules(agent, root)
    if search is not None:
        files.show_others(agent.programs, search)
    programs = NO_PROGRAMS if files.programs is None else files.programs.build_visible()
    return MountedAgent(replace(agent, **changes), Mounts(files.visible, files.agent_dir), programs)


class AgentFiles:
    """Finds the programs in an agent's section: next to the spec, in its folder, or elsewhere on this machine."""

    def __init__(self, agent: AgentSpec, root: Path, search: ProgramSearch | None) -> None:
        self._root = root
        self.programs = None if search is None else ProgramFiles(search)
        self._home = "" if search is None else str(search.home)
        folder = (
            None if agent.dir is None else _resolve_agent_dir(agent.dir, root, None if search is None else search.home)
        )
        self.agent_dir = "" if folder is None else str(folder) if os.path.isabs(agent.dir or "") else AGENT
        self.visible: dict[str, Path] = {} if folder is None else {self.agent_dir: folder}

    def map_command(self, command: str) -> str:
        """Return the command with its paths inside the sandbox."""
        for call in find_program_calls(command):
            self._show(call.program)
            if call.script is not None and os.path.isabs(self._expand_home(call.script)):
                self._show(call.script)
        program, script = find_program_words(command)
        if script is not None:  # from the end, to keep the spans valid
            command = _splice(command, script, self._map_path(script.text))
            if program is not None:
                return _splice(command, program, self._map_interpreter(program.text))
        return command if program is None else _splice(command, program, self._map_path(program.text))

    def map_binary(self, binary: str, args: tuple[str, ...]) -> dict[str, object]:
        """Return the program, or the script that it interprets, with its path inside the sandbox.

        Other arguments are unchanged.
        """
        self._show(binary)
        script = find_script(binary, args)
        if script is None:
            return {"binary": self._map_path(binary)}
        if os.path.isabs(args[script]):
            self._show(args[script])
        moved = (*args[:script], self._map_path(args[script]), *args[script + 1 :])
        return {"binary": self._map_interpreter(binary), "args": moved}

    def show_others(self, names: Iterable[str], search: ProgramSearch) -> None:
        """Mount programs that are not the agent's own, and the virtual environment that the user has activated.

        Raises AgentUnavailable if a required program is not on this machine.
        """
        if self.programs is not None and (environment := search.find_activated()):
            self.programs.add_environment(environment)
        for name in names:
            path = self._expand_home(name)
            if not (os.path.isfile(path) if os.path.isabs(path) else search.find(name)):
                hint = f"{make_install_hint(name)}on PATH there are {search.path}"
                raise AgentUnavailable(
                    f"agent.programs: this machine has no {name}", code="agent-not-started", hint=hint, config=True
                )
            self._show(name)
        for name in search.other_programs:
            self._show(name)

    def _show(self, word: str) -> None:
        path = self._expand_home(word)
        if self.programs is None or not word:
            return
        if os.path.isabs(path):
            self.programs.add_program(path)
        elif "/" not in word and not (self._root / word).is_file():
            self.programs.add_by_name(word)

    def _expand_home(self, word: str) -> str:
        """Expand `~` as the user's own shell does: inside the sandbox, `~` is the home of the trial."""
        return self._home + word[1:] if self._home and word.startswith("~/") else word

    def _map_interpreter(self, word: str) -> str:
        """Keep the original path of an interpreter in a virtual environment next to the spec."""
        local_path = os.path.abspath(self._base_folder / word)
        if self.programs is None or "/" not in word or os.path.isabs(word) or not os.path.isfile(local_path):
            return self._expand_home(word)
        self.programs.add_program(local_path)
        return local_path

    @property
    def _base_folder(self) -> Path:
        """The folder that a relative path refers to."""
        return self.visible[self.agent_dir] if self.agent_dir else self._root

    def _map_path(self, text: str) -> str:
        """Map a file next to the spec to its path inside the sandbox; return any other word unchanged."""
        pure = PurePosixPath(text)
        if not text or len(text) > 255 or pure.is_absolute() or ".." in pure.parts:
            return text
        local_path = self._base_folder / pure
        if not local_path.is_file():
            return self._expand_home(text)
        if self.programs is not None and not self.agent_dir and self.programs.is_packaged(str(local_path)):
            self.programs.add_program(str(local_path))
            return os.path.abspath(local_path)
        if self.programs is not None:
            self.programs.add_program(str(local_path), itself=False)
        if self.agent_dir:
            return f"{self.agent_dir}/{pure}"
        self.visible[f"{AGENT}/{pure}"] = local_path
        return f"{AGENT}/{pure}"


def _splice(command: str, word: ProgramWord, text: str) -> str:
    return command[: word.start] + text + command[word.end :]


def _find_modules(agent: AgentSpec, root: Path) -> dict[str, Path]:
    """Return the modules next to the spec that a Python agent's section names, including complete packages."""
    paths = [agent.endpoint, agent.tool_registry or "", agent.reset_function or ""]
    paths += [tool.path for tool in (*agent.tools, *agent.llm)]
    modules = {}
    for name in {path.partition(":")[0].partition(".")[0] for path in paths if path}:
        for place in (root / f"{name}.py", root / name):
            if place.exists():
                modules[f"{AGENT}/{place.name}"] = place
    return modules


def _resolve_agent_dir(name: str, root: Path, home: Path | None) -> Path:
    """Return the folder of `agent.dir`; raise AgentUnavailable if it does not exist or would expose too much."""
    folder = (root / name).resolve()
    absolute = os.path.isabs(name)
    if not folder.is_dir() or not (absolute or folder.is_relative_to(root.resolve())):
        where = "on this machine" if absolute else "next to the spec"
        raise AgentMisconfigured(f"agent.dir {name!r} is not a folder {where}")
    hint = "put the agent's files into a folder of their own"
    if root.resolve().is_relative_to(folder):
        why = "the agent would see its rules"
        raise AgentMisconfigured(f"agent.dir {name!r} holds the spec: {why}", hint=hint)
    if home is not None and home.resolve().is_relative_to(folder):
        why = "the agent would see everything in it"
        raise AgentMisconfigured(f"agent.dir {name!r} holds your home: {why}", hint=hint)
    return folder
