"""The programs that a check runs in the sandbox: which the world lacks, and who wrote the scripts among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

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
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


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


async def not_found_by_make(command: str, world: World) -> tuple[str, ...]:
    """The programs that `make` would run for the command and that are missing; none if the agent wrote a makefile."""
    names = list[str]()
    for folder, call in _placed_calls(command, world.sandbox.workspace):
        if PurePosixPath(call.program).name in ("make", "gmake"):
            dry = [call.program, "-C", str(folder), "-n", "--no-print-directory", *call.args]
            ran = await world.sandbox.run([SHELL, "-c", '"$@"', "sh", *dry], world.environ, throwaway=True)
            names += programs_in(ran.stdout.decode("utf-8", "replace"))
    if not names or any(PurePosixPath(one.path).name in _MAKEFILES for one in world.changes()):
        return ()
    # A word with a colon is the name before a message of make's own: "make: Nothing to be done".
    missing = await not_found(dict.fromkeys(name for name in names if ":" not in name), world)
    return tuple(name for name in missing if not of_workspace(name, world))


def runs_only_our_scripts(command: str, world: World) -> bool:
    """Whether the command runs scripts, and all of them are as they were when the agent started."""
    scripts = list(_scripts(command, world.sandbox.workspace))
    changed = {one.path for one in world.changes()} if scripts else ()
    return bool(scripts) and all(script not in changed and _lies_in(script, world) for script in scripts)


def _scripts(command: str, workspace: str) -> Iterator[str]:
    """The files that the command runs as programs or scripts, as paths in the workspace."""
    for folder, call in _placed_calls(command, workspace):
        for path in (call.script, call.program if "/" in call.program else None):
            if path is not None and (folder / path).is_relative_to(workspace):
                yield str((folder / path).relative_to(workspace))


def _placed_calls(command: str, workspace: str) -> Iterator[tuple[PurePosixPath, ProgramCall]]:
    """What the command runs, each with the folder that it has changed to."""
    folder = PurePosixPath(workspace)
    for call in readable_calls(command):
        if call.program == "cd":
            folder = folder.joinpath(*call.args[:1])
        yield folder, call


def _lies_in(path: str, world: World) -> bool:
    try:
        return world.sandbox.find(path) is not None
    except OutsideError:
        return False


def of_workspace(program: str, world: World) -> bool:
    """Whether it is a file that the agent was to make: a path in the workspace."""
    place = world.sandbox.workspace
    return "/" in program and (not program.startswith("/") or program.startswith(f"{place}/"))
