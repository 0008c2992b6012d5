"""The programs that a check runs in the sandbox: which of them are missing, and whether that is the agent's doing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from holdfast.errors import OutsideError
from holdfast.processes.startable import IS_THERE, SHELL
from holdfast.protocols.world import World
from holdfast.reading.program_word import ProgramCall, readable_calls

_MODULE, _PACKAGE = " -m ", "npx "
_LOOK_UP = (
    IS_THERE
    + """
lies_here() { [ -n "$(find . "$@" 2>/dev/null | head -n 1)" ]; }
has_module() { "$1" -c 'import sys, importlib.util as u; sys.exit(u.find_spec(sys.argv[1]) is None)' "$2" 2>/dev/null; }
for name; do
  case $name in
    *" -m "*)
      top=${name#* -m }; top=${top%%.*}
      has_module "${name%% -m *}" "$top" || lies_here -name "$top" || lies_here -name "$top.py" ;;
    "npx "*) is_there "${name#npx }" || lies_here -path "*/node_modules/.bin/${name#npx }" ;;
    *) is_there "$name" ;;
  esac || printf "%s\\n" "$name"
done
"""
)
"""A module or package anywhere in the workspace is there: a command may change its folder before it asks for it."""
_NOT_RUN = re.compile(
    r"^(?P<teller>[^\s:]+):(?: line)?(?: ?\d+:)?(?: exec:| eval:)?(?: failed to run command)? "
    r"[‘']?(?P<program>[^\s:‘’']+)[’']?: "
    r"(?:(?P<missing>(?:command )?not found)|No such file or directory|Permission denied|cannot execute.*)$"
)
"""How a shell, or a program that starts another, says that it could not: `run.sh: 3: pytest: not found`."""
_NO_MODULE = re.compile(r"^(?P<teller>\S*(?:python|pypy)[\d.]*): No module named (?P<program>[\w.]+)")
_RECIPE = re.compile(r"^g?make(?:\[\d+\])?: \*\*\* \[(?P<file>[^\]:]+):\d+: ", re.MULTILINE)
"""Where make's own recipe failed."""
_STARTERS = frozenset(("make", "gmake", "env", "xargs", "timeout", "nice", "nohup", "stdbuf"))
"""Their "No such file" is about a program; that of others, as of `cat`, about a file that the agent was to write."""
_SHELLS = frozenset(("sh", "bash", "dash", "ksh", "zsh"))


class NotRun(NamedTuple):
    """A program that something could not run, as it was printed."""

    program: str
    teller: str
    """Who said so: the name of a shell or program, or the path of a script."""
    certain: bool
    """Only a missing program is reported like this; else it may be a missing file."""


def programs_in(command: str) -> tuple[str, ...]:
    """The programs of a shell command that can be read without a shell, and what `python -m` and `npx` run."""
    calls = readable_calls(command)
    return tuple(dict.fromkeys(name for call in calls for name in (call.program, _started_by(call)) if name))


def is_started_by_another(name: str) -> bool:
    """Whether it is a module or a package, which may also be one that the agent was to write."""
    return _MODULE in name or name.startswith(_PACKAGE)


def _started_by(call: ProgramCall) -> str:
    program = PurePosixPath(call.program).name
    if program.startswith(("python", "pypy")) and "-m" in call.args[:-1]:
        return f"{call.program}{_MODULE}{call.args[call.args.index('-m') + 1]}"
    if program == "npx":
        package = next((word for word in call.args if not word.startswith("-")), "")
        return f"{_PACKAGE}{package}" if package.replace("-", "").isalnum() else ""
    return ""


async def not_found(programs: Iterable[str], world: World) -> tuple[str, ...]:
    """Those that a shell in the sandbox cannot run now; its own commands are found."""
    names = tuple(programs)
    if not names:
        return ()
    ran = await world.sandbox.run(
        [SHELL, "-c", _LOOK_UP, "sh", *names], world.environ, timeout_s=20, keep=1_000_000, throwaway=True
    )
    lines = set(ran.stdout.decode("utf-8", "replace").splitlines())
    return tuple(name for name in names if name in lines)


def not_run_in(output: str) -> list[NotRun]:
    """The programs that shells, make and the like say they could not run. Whether it is true has to be looked up."""
    recipe = _RECIPE.search(output)
    found = list[NotRun]()
    for line in output.splitlines():
        match = _NOT_RUN.match(line.strip()) or _NO_MODULE.match(line.strip())
        if match is None:
            continue
        program, teller = match["program"], match["teller"]
        name = PurePosixPath(teller).name
        certain = match.re is _NO_MODULE or match["missing"] is not None or name in _STARTERS
        if match.re is _NO_MODULE:
            program = f"{teller}{_MODULE}{program}"
        # A recipe is the makefile's: make runs it itself or has it run by a shell, which gives only its own name.
        by_make = recipe is not None and (name in _SHELLS or name.removeprefix("g") == "make")
        found.append(NotRun(program, recipe["file"] if recipe is not None and by_make else teller, certain))
    return found


def is_agents_doing(one: NotRun, world: World) -> bool:
    """Whether the agent made, changed or removed what could not be run, or the script that could not run it."""
    changed = [PurePosixPath(change.path) for change in world.changes()]
    names = {path.name for path in changed}
    program = PurePosixPath(one.program.rpartition(_MODULE)[2])
    touched = bool({program.name, f"{program.name.split('.')[0]}.py"} & names)
    # A script says its path as it was called, from whatever folder that was: the end of the path has to do.
    teller = PurePosixPath(one.teller)
    by_its_script = any(path.parts[-len(teller.parts) :] == teller.parts for path in changed if teller.parts)
    # What is missing in the workspace the agent was to write. If it is there, its interpreter is missing.
    is_script = not one.certain and teller.name in _SHELLS
    unwritten = (is_script or is_in_workspace(one.program, world)) and not _exists(one.program, world)
    return touched or by_its_script or unwritten


def _exists(program: str, world: World) -> bool:
    path = PurePosixPath(world.sandbox.workspace) / program
    try:
        return world.sandbox.find(str(path.relative_to(world.sandbox.workspace))) is not None
    except (OutsideError, ValueError):
        return False


def is_in_workspace(program: str, world: World) -> bool:
    """Whether it is a path in the workspace: a file that the agent was to write."""
    place = world.sandbox.workspace
    return "/" in program and (not program.startswith("/") or program.startswith(f"{place}/"))
