"""Which words of a command are programs: the agent's own, and all that it names. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

_WORD = re.compile(r"""[^\s'";&|()<>$`\\]+|'[^']*'|"[^"$`\\]*\"""")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHELLS = {"sh", "bash", "dash", "ksh", "zsh"}
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_JAVASCRIPT = {"node", "nodejs", "tsx", "ts-node"}
_OTHERS = {"ruby", "perl", "php", "Rscript", "lua"}
_RUNNERS = {"uv", "deno", "bun"}
"""Their `run` takes a script."""
_BEFORE = {"exec", "env", "nohup", "command", "time", "nice", "stdbuf", "timeout", "xargs"}
"""Words that a command may begin with, and that start another program."""
_KEYWORDS = {"if", "then", "else", "elif", "do", "while", "until", "!", "{"}
"""Of the shell: a command follows."""
_BEFORE_WITH_VALUE = {
    "-u",
    "--unset",
    "-C",
    "--chdir",
    "-n",
    "-s",
    "-k",
    "-I",
    "-P",
    "-L",
    "-o",
    "-e",
    "--signal",
    "--kill-after",
}
_LOOKS_UP = {"-v", "-V"}
"""After `command`: it only asks whether a program is there."""
_SHELL_TEXT = re.compile(r"-[a-z]*c")
_NO_SCRIPT = {"-c", "-m", "-e", "-p", "--eval", "--print"}
"""What follows is code or a module, not a file."""
_WITH_VALUE = {"-W", "-X", "-r", "--require", "--import", "--loader", "-o", "-O", "-I"}
_OPERATORS = "();|&\n"
_UNREADABLE = re.compile(r"\$\(\(|\bcase\s|\balias\s|\bPATH=|(?:^|[;&|\n])\s*(?:\.|source|eval)\s", re.MULTILINE)
"""What changes which words are programs, or where they are found: only a shell can tell then."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
_EXPANDED = frozenset("$`*?[]{}~\\'\"")
"""What only a shell can read."""


class ProgramWord(NamedTuple):
    """A word that names a program or a script, and its place, without its quotes."""

    text: str
    start: int
    end: int


class ProgramCall(NamedTuple):
    """What one command of a line runs: a program, and the script that it interprets, if it does."""

    program: str
    script: str | None = None
    args: tuple[str, ...] = ()


def program_words(command: str) -> tuple[ProgramWord | None, ProgramWord | None]:
    """The program that a shell command begins with and its script; None if there is none or only a shell knows."""
    words = _words(command)
    first = _first([word.text for word in words])
    if first >= len(words):
        return None, None
    script = script_of(words[first].text, [word.text for word in words[first + 1 :]])
    return words[first], None if script is None else words[first + 1 + script]


def program_calls(command: str) -> list[ProgramCall]:
    """What every command of a line runs, as far as that is known without a shell; also the command of `sh -c`."""
    found = list[ProgramCall]()
    for words in _commands(command):
        first = _first(words)
        if first >= len(words):
            continue
        program, args = words[first], words[first + 1 :]
        script = script_of(program, args)
        found.append(ProgramCall(program, None if script is None else args[script], tuple(args)))
        found += program_calls(_shell_text(program, args))
    return found


def _shell_text(program: str, args: Sequence[str]) -> str:
    """What a shell is given to run as text; empty where it is not."""
    if PurePosixPath(program).name not in _SHELLS:
        return ""
    for at, word in enumerate(args[:-1]):
        if _SHELL_TEXT.fullmatch(word):
            return args[at + 1]
        if not word.startswith("-"):
            break
    return ""


def readable_calls(command: str) -> list[ProgramCall]:
    """Calls whose program is written literally, so that no shell has to expand it."""
    return [call for call in program_calls(command) if call.program and not _EXPANDED.intersection(call.program)]


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
        if args[at] in _NO_SCRIPT or (name in _SHELLS and _SHELL_TEXT.fullmatch(args[at])):
            return None
        at += 2 if args[at] in _WITH_VALUE else 1
    return at if at < len(args) else None


def _first(words: Sequence[str]) -> int:
    """Which word is the program: assignments, and words that start another program, come before it."""
    at, before = 0, ""
    while at < len(words):
        word, name = words[at], PurePosixPath(words[at]).name
        if before and word.startswith("-"):
            if before == "command" and word in _LOOKS_UP:
                return len(words)
            at += 2 if word in _BEFORE_WITH_VALUE else 1
        elif before == "timeout":
            at, before = at + 1, "env"  # how long the program may take
        elif _ASSIGNMENT.match(word) or word in _KEYWORDS or name in _BEFORE:
            before = name if name in _BEFORE else before
            at += 1
        else:
            break
    return at


def _commands(line: str) -> Iterator[list[str]]:
    """The words of every command of a line, without what is redirected."""
    if _UNREADABLE.search(line):
        return
    plain = _COMMENT.sub("", line.replace("\\\n", " "))
    read = shlex.shlex(plain, posix=True, punctuation_chars=_OPERATORS + "<>")
    read.whitespace, read.whitespace_split, read.commenters = " \t", True, ""
    words: list[str] = []
    # The commands around each open parenthesis: what follows it goes on with them, as in `test $(wc -l < a) = 2`.
    outer: list[list[str]] = []
    redirected = False
    try:
        for token in read:
            if token.startswith("<<"):
                break  # a text for a program follows
            if token.startswith("()"):
                return  # a function: its name is not a program, and calls of it look like one
            if token and set(token) <= set(_OPERATORS):
                for sign in token:
                    if sign == "(":
                        outer.append(words)
                        words = []
                    elif sign == ")" and outer:
                        yield words
                        words = outer.pop()
                    elif words:
                        yield words
                        words = []
            elif not token or set(token) <= set("<>&"):
                redirected = bool(token)
            elif redirected:
                redirected = False  # a file
            else:
                words.append(token)
    except ValueError:  # a quote that nobody closes: the shell will say so
        return
    yield words
    yield from outer


def _words(command: str) -> list[ProgramWord]:
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
        found.append(ProgramWord(word[0][1:-1] if quoted else word[0], at + quoted, ends - quoted))
        at = ends
        if at < len(command) and command[at] not in " \t":
            break
    return found
