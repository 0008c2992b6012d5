"""Whether a sandbox would find the agent's program, told from outside, by the rules that worlds are opened with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import AgentUnavailable
from holdfast.execute.sandbox_backend import interpreter, program_search, usual_environ
from holdfast.model.spec import AgentSpec, Spec
from holdfast.processes.known_programs import install_hint
from holdfast.reading.program_word import program_calls
from holdfast.report.diagnosis import DoctorFinding
from holdfast.world.boxed_place import SYSTEM, what_is_seen
from holdfast.world.mounted_agent import mount
from holdfast.world.sandbox import system
from holdfast.world.sandbox.inside_paths import InsidePaths

_NOWHERE = "/proc/self/fdinfo/none"
"""What is not shown is not there."""
_BUILT_IN = frozenset(
    (".", ":", "[", "case", "cd", "eval", "exit", "export", "for", "if", "read", "set", "trap", "while")
)


def boxed_program(spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> DoctorFinding:
    """Where it is, and what of this machine is shown for it; else what the sandbox sees, and what to write."""
    key = "agent.binary" if agent.command is None else "agent.command"
    try:
        seen = mount(agent, root, program_search(spec, agent, root, environ))
    except AgentUnavailable as refused:
        return DoctorFinding("agent.dir", "not", str(refused), refused.hint, 4)
    word = _word(seen.agent)
    if not word or set("$`*?{}").intersection(word):
        return DoctorFinding(key, "unproven", "the shell decides what it runs")
    path = {**usual_environ(seen.programs.folders), **agent.env}["PATH"]
    shown = {**interpreter(), **seen.programs.visible, **seen.mounts.visible}
    found = _found(word, path, _inside(shown, seen.programs.links))
    if found or (agent.command is not None and word in _BUILT_IN):
        return DoctorFinding(key, "ok", "; ".join([found or word, *seen.programs.notes()]))
    fix = install_hint(word) + what_is_seen(path, (*SYSTEM, *sorted(shown), "/workspace"))
    return DoctorFinding(key, "not", f"a sandbox finds no {word}", fix, 4)


def _word(agent: AgentSpec) -> str:
    if agent.command is None:
        return agent.binary or ""
    return next((call.program for call in program_calls(agent.command)), "")


def _inside(shown: Mapping[str, Path], links: Mapping[str, str]) -> InsidePaths:
    there = system.shared()
    same = {path: path for path in (*there.folders, *there.links, *links)}
    return InsidePaths({"/": _NOWHERE, **same, **{path: str(real) for path, real in shown.items()}})


def _found(word: str, path: str, inside: InsidePaths) -> str:
    """Where it is inside; empty if it cannot be executed there. What lies in the workspace is not known yet."""
    if "/" in word and not os.path.isabs(word):
        return f"{word} in the workspace"
    places = [word] if "/" in word else [os.path.join(folder, word) for folder in path.split(":")]
    return next((place for place in places if inside.refused(place, path, "/workspace") == 0), "")
