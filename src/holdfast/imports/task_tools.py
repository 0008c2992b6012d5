"""Replaces the installers that a task's own scripts begin with: uv, pip and apt use what is installed here.

Copied into every imported task as text, and run in its sandbox: standard library only.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from importlib import metadata
from typing import NoReturn

NAMES = ("apt", "apt-get", "curl", "pip", "pip3", "pytest", "python", "python3", "uv", "uvx", "wget")
"""The programs that are replaced; each runs the real one for everything that is not installing."""
MISSING = "HOLDFAST_MISSING"
"""The file that collects what is missing here, a name per line."""
SCRIPTS = "HOLDFAST_SCRIPTS"
"""The folder of the task's own scripts."""
NEVER_NEEDED = frozenset({"pip", "pytest-json-ctrf", "setuptools", "uv", "wheel"})
"""The report that pytest-json-ctrf writes is not read here."""
WITH_VALUE = frozenset(
    ("-p", "--python", "-w", "--with", "--with-requirements", "--with-editable", "--from", "--project", "--directory",
     "--extra", "--group", "--env-file", "--index-url", "-i", "--extra-index-url", "--index", "--default-index",
     "--cache-dir", "-r", "--requirement", "-c", "--constraint", "-f", "--find-links", "--exclude-newer", "--target",
     "-t", "--prefix", "--root", "--config-settings", "--python-version", "--python-platform", "--timeout", "--retries")
)  # fmt: skip
"""Options of uv and pip whose value is the next word."""
ADDS = ("--with", "-w", "--from")
"""Options of uv that name packages."""
UV_INSTALLER = re.compile(r"astral\.sh/uv|/uv/releases/|get-?pip\.py")
START_PYTEST = "import sys; sys.path.pop(0); import pytest; sys.exit(pytest.main())"
"""Without the folder it starts in, where an agent could have put a pytest of its own."""


def main(name: str, args: list[str]) -> int:
    """Run the replacement of that program; returns its exit code unless another program takes over."""
    if name == "uv":
        return run_uv(args)
    if name == "uvx":
        return run_command(args, tool=True)
    if name in ("apt", "apt-get"):
        return 0  # whatever is called later and is not here is reported then
    if name in ("curl", "wget") and any(UV_INSTALLER.search(word) for word in args):
        return 0
    if name in ("pip", "pip3"):
        return install(args[1:]) if args[:1] == ["install"] else run_real(name, args)
    if name == "pytest":
        return run_pytest(args)
    return run_python(name, args) if name in ("python", "python3") else run_real(name, args)


def run_python(name: str, args: list[str]) -> int:
    """Run Python, except for its modules that install packages."""
    if args[:3] == ["-m", "pip", "install"]:
        return install(args[3:])
    if args[:2] == ["-m", "venv"]:
        return make_environment(args[2:])
    if args[:2] == ["-m", "pytest"]:
        args = ["-m", "pytest", *build_pytest_arguments(args[2:])]
    return run_real(name, args)


def run_uv(args: list[str]) -> int:
    """Run uv. Commands that make an environment do nothing: the one of this sandbox is used."""
    _, words = split_options(args, until_word=True)
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb == "run" or (verb == "tool" and rest[:1] == ["run"]):
        return run_command(rest if verb == "run" else rest[1:], tool=verb == "tool")
    if verb == "pip":
        return install(rest[1:]) if rest[:1] == ["install"] else run_real("pip", rest)
    if verb == "add":
        return install(rest)
    return make_environment(rest) if verb == "venv" else 0


def run_command(args: list[str], *, tool: bool = False) -> int:
    """Run the command of `uv run` or `uvx` if its packages are installed."""
    chosen, words = split_options(args, until_word=True)
    module = [value for option, value in chosen if option in ("-m", "--module")]
    wanted = [name for option, value in chosen if option in ADDS for name in value.split(",")]
    files = [value for option, value in chosen if option == "--with-requirements"]
    if code := install([*wanted, *(word for file in files for word in ("-r", file))]):
        return code
    if module:
        return main("python3", ["-m", *words])
    if not words:
        return 0
    name = words[0].partition("@")[0] if tool else words[0]
    if name.endswith(".py"):
        return run_real("python3", words)
    return main(name, words[1:]) if name in NAMES else run_real(name, words[1:])


def install(args: list[str]) -> int:
    """Succeed if every package is installed: nothing is downloaded while the tests run."""
    chosen, names = split_options(args)
    files = [value for option, value in chosen if option in ("-r", "--requirement")]
    wanted = [*names, *(line for file in files for line in read_requirements(file))]
    lacking = [requirement for requirement in wanted if not is_installed(requirement)]
    if lacking:
        report_missing(*lacking)
        print(f"not installed here: {', '.join(lacking)}", file=sys.stderr)
    return 1 if lacking else 0


def split_options(args: list[str], *, until_word: bool = False) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the options with their values, and the other words; `until_word` stops at the first word."""
    wanted: list[tuple[str, str]] = []
    words: list[str] = []
    at = 0
    while at < len(args):
        word, at = args[at], at + 1
        if not word.startswith("-") or word == "-":
            if until_word:
                return wanted, args[at - 1 :]
            words.append(word)
        elif word == "--":
            return wanted, [*words, *args[at:]]
        elif "=" in word:
            wanted.append((word.partition("=")[0], word.partition("=")[2]))
        elif word in WITH_VALUE:
            wanted.append((word, args[at] if at < len(args) else ""))
            at += 1
        else:
            wanted.append((word, ""))
    return wanted, words


def read_requirements(file: str) -> list[str]:
    """Return the lines of a requirements file that name packages."""
    try:
        with open(file, encoding="utf-8", errors="replace") as text:
            lines = [line.partition("#")[0].strip() for line in text]
    except OSError:
        return [file]
    return [line for line in lines if line and not line.startswith("-")]


def is_installed(requirement: str) -> bool:
    """Return whether a package is installed, in any version, or a program of its name, as pipx installs pytest."""
    match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement)
    name = match[0] if match and not re.search(r"[/\\]|^\.", requirement) else ""
    if name.lower().replace("_", "-") in NEVER_NEEDED:
        return True
    try:
        metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return find_program(name) is not None
    return True


def run_pytest(args: list[str]) -> int:
    """Run the installed pytest: that of this Python, else the first on PATH."""
    if importlib.util.find_spec("pytest") is None:
        return run_real("pytest", build_pytest_arguments(args))
    return exec_program(sys.executable, ["-c", START_PYTEST, *build_pytest_arguments(args)])


def build_pytest_arguments(args: list[str]) -> list[str]:
    """Remove `--ctrf FILE` unless the plug-in that reads it is installed, and turn off Holdfast's plug-in."""
    if importlib.util.find_spec("pytest_json_ctrf") is None:
        options = [word.startswith("--ctrf") for word in args]
        values = [at > 0 and args[at - 1] == "--ctrf" for at in range(len(args))]
        args = [word for word, option, value in zip(args, options, values, strict=True) if not option and not value]
    return ["-p", "no:holdfast", *args]


def run_real(name: str, args: list[str]) -> int:
    """Replace this process with the real program of that name."""
    program = find_program(name)
    if program is None and name in ("python", "python3"):
        program = sys.executable
    if program is None:
        report_missing(name)
        print(f"{name}: command not found", file=sys.stderr)
        return 127
    return exec_program(program, args)


def find_program(name: str) -> str | None:
    """Return the first program of that name on PATH that is not a stand-in."""
    own = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join(folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder != own)
    return shutil.which(name, path=path) if name else None


def exec_program(program: str, args: list[str]) -> NoReturn:
    """Replace this process by the program."""
    os.execv(program, [program, *args])  # noqa: S606


def make_environment(args: list[str]) -> int:
    """Make an environment with the programs of this sandbox; removes one that the agent made there."""
    _, words = split_options(args)
    folder = words[0] if words else ".venv"
    if os.path.islink(folder):
        os.unlink(folder)
    shutil.rmtree(folder, ignore_errors=True)
    programs = os.path.join(folder, "bin")
    os.makedirs(programs)
    tools = os.path.dirname(os.path.abspath(__file__))
    for name in NAMES:
        os.symlink(os.path.join(tools, name), os.path.join(programs, name))
    with open(os.path.join(programs, "activate"), "x") as script:
        script.write("deactivate() { :; }\n")
    return 0


def report_missing(*names: str) -> None:
    """Record what is missing: tests that lack something have not judged the agent.

    It records only for the task's own scripts and its pytest: what a script of the agent lacks is the agent's failure.
    """
    with open(f"/proc/{os.getppid()}/cmdline") as file:
        caller = file.read().split("\0")
    if not any(word.startswith(os.environ[SCRIPTS]) for word in caller):
        return
    with open(os.environ[MISSING], "a") as file:
        file.writelines(f"{name}\n" for name in names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
