"""The programs that a check runs in the sandbox: which of them are missing, and whether the agent caused that."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import PurePosixPath
from posixpath import join, normpath
from shlex import quote
from typing import Literal

from msgspec import Struct

from holdfast.errors import OutsideError
from holdfast.processes.startable import IS_THERE, NOT_RUN_CODES, SHELL
from holdfast.protocols.world import World
from holdfast.reading.bash_syntax import BASH_FEATURES, find_bash_features
from holdfast.reading.program_word import ProgramCall, find_path_changes, find_readable_calls

_MODULE, _PACKAGE, _AFTER = " -m ", "npx ", " (after "
_READ_CHARS = 100_000
_MAKE_FAILED = 2
_NPM_PROGRAMS = "node_modules/.bin"
_LOOK_UP = (
    IS_THERE
    + """
lies_here() { [ -n "$(find . "$@" 2>/dev/null | head -n 1)" ]; }
has_module() { "$1" -c 'import sys, importlib.util as u; sys.exit(u.find_spec(sys.argv[1]) is None)' "$2" 2>/dev/null; }
look_up() {
  case $1 in
    *" (after "*")")
      changes=${1#* (after }
      ( eval "${changes%)}" >/dev/null 2>&1; look_up "${1%% (after *}" ) ;;
    *" -m "*)
      top=${1#* -m }; top=${top%%.*}
      has_module "${1%% -m *}" "$top" || lies_here -name "$top" || lies_here -name "$top.py" ;;
    "npx "*) is_there "${1#npx }" || lies_here -path "*/node_modules/.bin/${1#npx }" ;;
"""
    + "\n".join(
        f"    {quote(name)}) {SHELL} -c {quote(one.probe)} >/dev/null 2>&1 ;;" for name, one in BASH_FEATURES.items()
    )
    + """
    *) is_there "$1" ;;
  esac
}
for name; do look_up "$name" || printf "%s\\n" "$name"; done
"""
)
"""Finds a module or package anywhere in the workspace: a command may change its folder before it uses it."""
_SHELLS_OWN = {".", "export", "cd"}
"""Commands of every shell that change where the others are found."""
_NO_WORK = {"cd", "exit", "return", "true", "false", "echo", "printf", ":"}
"""Commands that decide nothing themselves."""
_REPORT = re.compile(
    r"^([^\s:]+):(?: line)?(?: ?\d+:)?(?: exec:| eval:)?"
    r"(?: failed to (?:run command|execute)| can(?:no|')t open)? [‘']?([^\s:‘’']+)[’']?: "
    r"(?:\S+: bad interpreter: )?"
    r"(?:(?:command )?not found|(No such file or directory)|Permission denied|cannot execute.*)$",
    re.MULTILINE,
)
"""How a shell, or a program that starts another, reports that it could not: `run.sh: 3: pytest: not found`."""
_MAKE_REPORT = re.compile(r"^g?make(?:\[\d+\])?: \*\*\* \[[^\]]+\] Error (\d+)$", re.MULTILINE)
_FOLDER = re.compile(r"(?:\b(?P<cd>cd)|\s-C|--directory|--prefix)[ =]+['\"]?(?P<folder>[^\s;&|'\"]+)")
_PATH = re.compile(r"\bPATH=['\"]?([^\s;&|'\"]+)")
_PWD = re.compile(r"\$PWD|\$\{PWD\}")
_INTERPRETER = re.compile(r"#!\s*(\S+).*", re.DOTALL)
_WORD = re.compile(r"[^\s'\"();&|<>=@`]+")
_SHELLS = ("sh", "bash", "dash")
_SHELL_SCRIPT = re.compile(r"#!\s*\S*(?:/env\s+|/)(?:ba|da)?sh\b")
_WORDS_BEFORE_SCRIPT = 4
_GUARDED = re.compile(r"\b(?:command\s+-[vV]|which|type|hash)\s+([\w.+-]+)")
"""A program that a script looks for before it runs it."""
_STARTERS = ("make", "gmake", "env", "xargs", "timeout", "nice", "nohup", "stdbuf", "setsid")
"""Programs whose "No such file" concerns a program; a shell's concerns a script or a path."""
_GROUP = re.compile(r"\s*[({]")
_READ_UNASKED = {"make": ("GNUmakefile", "makefile", "Makefile"), "npm": ("package.json",), "npx": ("package.json",)}
"""Files that a program reads although the command does not name them."""

ExitMeaning = Literal["fail", "error", "unproven", "by exit code"]


class NotRun(Struct, frozen=True, omit_defaults=True):
    """The known facts about the program that a command could not run."""

    exit_code: int | None = None
    """126 or 127, of the command or, if its program is known, of the recipe at which make stopped."""
    program: str = ""
    """The program that is missing now; empty if none is known to be missing."""
    at_start: bool = False
    """Whether it could be run when the agent started."""
    by_agent: bool = False
    """Whether the agent wrote, or had to write, the file that could not be run or that ended like this."""


def interpret_exit(not_run: NotRun) -> ExitMeaning:
    """Return the meaning of an exit code that the rule does not expect. The first row that matches decides."""
    if not_run.exit_code not in NOT_RUN_CODES:
        return "by exit code"
    if not_run.by_agent:
        return "fail"
    if not not_run.program:
        return "unproven"  # a script may have chosen this exit code
    return "fail" if not_run.at_start else "error"


def list_programs(command: str) -> tuple[str, ...]:
    """Return the programs of a shell command that can be read without a shell, what `python -m` and `npx` run, and the
    features of bash that it needs.

    If the command changes where programs are found, each says so: `pytest (after . env/bin/activate)`.
    """
    calls = find_readable_calls(command)
    names = dict.fromkeys(name for call in calls for name in (call.program, _get_started_program(call)) if name)
    if changes := "; ".join(find_path_changes(command)):
        names = dict.fromkeys(f"{name}{_AFTER}{changes})" for name in names if name not in _SHELLS_OWN)
    return (*names, *find_bash_features(command))


def strip_changes(name: str) -> str:
    """Return the program itself, from a name that `list_programs` returns."""
    return name.partition(_AFTER)[0]


def _get_started_program(call: ProgramCall) -> str:
    program = PurePosixPath(call.program).name
    if program.startswith(("python", "pypy")) and "-m" in call.args[:-1]:
        return f"{call.program}{_MODULE}{call.args[call.args.index('-m') + 1]}"
    if program == "npx":
        package = next((word for word in call.args if not word.startswith("-")), "")
        return f"{_PACKAGE}{package}" if package.replace("-", "").isalnum() else ""
    return ""


async def find_missing_programs(programs: Iterable[str], world: World) -> tuple[str, ...]:
    """Return the programs that a shell in the sandbox cannot run now; builtins count as present."""
    names = tuple(programs)
    if not names:
        return ()
    ran = await world.sandbox.run(
        [SHELL, "-c", _LOOK_UP, "sh", *names], world.environ, timeout_s=20, keep=1_000_000, throwaway=True
    )
    lines = set(ran.stdout.decode("utf-8", "replace").splitlines())
    return tuple(name for name in names if name in lines)


async def find_program_not_run(
    command: str, exit_code: int | None, output: str, world: World, never_there: Collection[str]
) -> NotRun:
    """Return the program that could not be run, if the command, or a recipe of its make, ended with 126 or 127.

    An agent's program can print anything. So a report counts only if the command, or a file that the agent did not
    change, names that program, and if the program is really missing.
    """
    recipes = [int(code) for code in _MAKE_REPORT.findall(output) if int(code) != _MAKE_FAILED]
    code = recipes[-1] if exit_code == _MAKE_FAILED and recipes else exit_code
    if code not in NOT_RUN_CODES:
        return NotRun()
    files = _Files(command, world)
    *_, (reporter, program, no_file) = _REPORT.findall(output) or [("", "", "")]
    is_script = no_file and "/" not in program and PurePosixPath(reporter).name not in _STARTERS
    if is_script or is_in_workspace(program, world):
        # A file that the agent had to write is its doing. If the file is unchanged, its interpreter is missing.
        text = files.read(program)
        if files.is_changed(program) or not text:
            return NotRun(code, program, by_agent=True)
        reporter, program = program, _INTERPRETER.sub(r"\1", text) if text.startswith("#!") else program
    texts = files.read_trusted_texts(reporter)
    programs = list_programs(command)
    reported = any(_is_named(program, text) for text in texts)
    gone = await find_missing_programs([program] if reported else programs, world)
    if code != exit_code and not (reported and gone):
        return NotRun()
    if not gone:
        return NotRun(code, by_agent=files.has_changed_one_of(texts))
    program = strip_changes(gone[0])
    return NotRun(code, program, files.is_changed_program(program) or gone[0] in set(programs).difference(never_there))


async def find_missing_in_scripts(command: str, world: World, *, passed: bool) -> tuple[str, ...]:
    """Return the programs that are missing and that the command's shell scripts run, without another way.

    A script may hide that a program is missing. Scripts that the agent wrote or changed, and programs that it removed
    or that the script itself looks for (`command -v jq`), are the agent's or the script's own business.
    """
    files = _Files(command, world)
    for script in files.read_scripts(find_readable_calls(command)):
        guarded = set(_GUARDED.findall(script))
        names = [name for name in list_programs(script) if not is_in_workspace(name, world)]
        gone = await find_missing_programs([name for name in names if strip_changes(name) not in guarded], world)
        lacking = tuple(name for name in gone if not files.is_changed_program(strip_changes(name)))
        if lacking and not has_another_way(script, lacking, passed=passed):
            return lacking
    return ()


def has_another_way(command: str, missing: Collection[str], *, passed: bool) -> bool:
    """Return whether the command decides without the missing programs, as in `uv run pytest || pytest`.

    Only `||` offers another way. After a `;` or in a pipe, a program may only read what the missing one was to write.
    """
    # A command such as `pytest || python -m unittest` still decides when pytest is missing, and its exit code then
    # counts. So every statement with a missing program needs another program behind its `||` that does work of its own.
    present = [strip_changes(name) for name in list_programs(command) if name not in missing]
    workers = [name for name in present if name not in _NO_WORK]
    if not all(_is_named(strip_changes(name), command) for name in missing):
        return False  # `((` is looked up as `let`
    for statement in re.split(r"[;\n]", command):
        alternatives = statement.split("||")
        lacking = [
            at
            for at, alternative in enumerate(alternatives)
            if any(_is_named(strip_changes(name), alternative) for name in missing)
        ]
        # What follows `&&` after the other way is run in any case, as in `pytest || true && test -d src`.
        others = [
            alternative if _GROUP.match(alternative) else alternative.partition("&&")[0] for alternative in alternatives
        ]
        working = [
            at
            for at, alternative in enumerate(others)
            if at not in lacking and any(_is_named(w, alternative) for w in workers)
        ]
        # A way before the missing one has decided only if it succeeded.
        if not all(any(other > at or passed for other in working) for at in lacking):
            return False
    return True


def _is_named(program: str, text: str) -> bool:
    return bool(program) and re.search(rf"(?<![\w./]){re.escape(program)}(?![\w./-])", text) is not None


class _Files:
    """The files of the workspace that a command may run, by exact path."""

    def __init__(self, command: str, world: World) -> None:
        self._sandbox, self._command = world.sandbox, command
        self._changed = {change.path for change in world.changes()}
        self._folders = [folder := self._sandbox.workspace]
        for match in _FOLDER.finditer(command):
            self._folders.append(normpath(join(folder, match["folder"])))
            folder = self._folders[-1] if match["cd"] else folder
        path = ":".join([world.environ.get("PATH", ""), *_PATH.findall(command)])
        self._path = _PWD.sub(self._sandbox.workspace, path).split(":")
        self._unnamed = [name for tool, names in _READ_UNASKED.items() if _is_named(tool, command) for name in names]

    def _list_paths(self, name: str) -> list[str]:
        """Return the paths in the workspace that it may refer to."""
        paths = {normpath(join(folder, name)): None for folder in self._folders}
        top = f"{self._sandbox.workspace}/"
        return [path.removeprefix(top) for path in paths if path.startswith(top)]

    def is_changed(self, name: str) -> bool:
        """Return whether the agent created, changed or removed it, or removed a folder that contained it."""
        places = map(PurePosixPath, self._list_paths(name))
        return any(not self._changed.isdisjoint(map(str, (path, *path.parents))) for path in places)

    def is_changed_program(self, name: str) -> bool:
        """Return whether the agent changed the program of that name, in the PATH or in the folder that npm searches."""
        folders = [""] if "/" in name else [*filter(None, self._path), _NPM_PROGRAMS]
        return any(self.is_changed(join(folder, name)) for folder in folders)

    def read(self, name: str) -> str:
        """Return the beginning of the file of that name; empty if there is none."""
        for path in self._list_paths(name):
            with suppress(OutsideError, OSError):
                host_path = self._sandbox.find(path)
                if host_path is not None and host_path.is_file():
                    with host_path.open(errors="replace") as file:
                        return file.read(_READ_CHARS)
        return ""

    def read_scripts(self, calls: Iterable[ProgramCall]) -> list[str]:
        """Return the shell scripts that are run and that the agent did not change."""
        words = ((call.program, *call.args[:_WORDS_BEFORE_SCRIPT]) for call in calls)
        names = [
            next((word for word in args if not word.startswith("-")), "")
            if PurePosixPath(program).name in _SHELLS
            else program
            for program, *args in words
        ]
        texts = {name: self.read(name) for name in names if name and not self.is_changed(name)}
        return [
            text
            for name, text in texts.items()
            if text and (name.endswith((".sh", ".bash")) or _SHELL_SCRIPT.match(text))
        ]

    def read_trusted_texts(self, reporter: str) -> list[str]:
        """Return the command, and the files that it or the report names and that the agent did not change."""
        names = {*_WORD.findall(self._command), reporter, *self._unnamed}
        return [self._command, *(self.read(name) for name in names if name and not self.is_changed(name))]

    def has_changed_one_of(self, texts: Iterable[str]) -> bool:
        """Return whether the agent created, changed or removed a file or program that one of the texts names."""
        words = {*self._unnamed, *(word for text in texts for word in _WORD.findall(text))}
        programs = words.intersection(PurePosixPath(path).name for path in self._changed)
        return any(map(self.is_changed, words)) or any(map(self.is_changed_program, programs))


def is_in_workspace(program: str, world: World) -> bool:
    """Return whether it is a path in the workspace: a file that the agent had to write."""
    place, program = world.sandbox.workspace, strip_changes(program)
    return "/" in program and (not program.startswith("/") or program.startswith(f"{place}/"))
