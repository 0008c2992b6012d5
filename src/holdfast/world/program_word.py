"""Which word of a command is the agent's own program: the first, or the script of a known interpreter. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

_WORD = re.compile(r"""[^\s'";&|()<>$`\\]+|'[^']*'|"[^"$`\\]*\"""")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHELLS = {"sh", "bash", "dash", "ksh", "zsh"}
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_JAVASCRIPT = {"node", "nodejs", "tsx", "ts-node"}
_OTHERS = {"ruby", "perl", "php", "Rscript", "lua"}
_RUNNERS = {"uv", "deno", "bun"}
"""Their `run` takes a script."""
_BEFORE = {"exec", "env", "nohup"}
"""Words that a command may begin with, and that start another program."""
_NO_SCRIPT = {"-c", "-m", "-e", "-p", "--eval", "--print"}
"""What follows is code or a module, not a file."""
_WITH_VALUE = {"-W", "-X", "-r", "--require", "--import", "--loader", "-o", "-O", "-I"}


def program_span(command: str) -> tuple[int, int] | None:
    """Where the program stands in a shell command, without its quotes; None if that cannot be told."""
    words = _words(command)
    first = 0
    while first < len(words) and (_ASSIGNMENT.match(words[first][0]) or words[first][0] in _BEFORE):
        first += 1
    if first >= len(words):
        return None
    script = script_of(words[first][0], [text for text, _ in words[first + 1 :]])
    return words[first if script is None else first + 1 + script][1]


def script_of(program: str, args: Sequence[str]) -> int | None:
    """Which argument is the script that a known interpreter runs; None if the program is none, or runs no file."""
    name, at = PurePosixPath(program).name, 0
    if name in _RUNNERS:
        if not args or args[0] != "run":
            return None
        at = 1
    elif not (name in _SHELLS | _JAVASCRIPT | _OTHERS or _PYTHON.fullmatch(name)):
        return None
    while at < len(args) and args[at].startswith("-"):
        if args[at] in _NO_SCRIPT:
            return None
        at += 2 if args[at] in _WITH_VALUE else 1
    return at if at < len(args) else None


def _words(command: str) -> list[tuple[str, tuple[int, int]]]:
    """The words of the first command of a line, each with its span; quotes are left out of both."""
    found = []
    at = 0
    while at < len(command):
        if command[at] in " \t":
            at += 1
            continue
        word = _WORD.match(command, at)
        ends = word.end() if word else at
        if word is None or (ends < len(command) and command[ends] not in " \t\n;&|<>"):
            break  # something that only a shell can read
        quoted = word[0][0] in "'\""
        found.append((word[0][1:-1] if quoted else word[0], (at + quoted, ends - quoted)))
        at = ends
        if at < len(command) and command[at] not in " \t":
            break
    return found
