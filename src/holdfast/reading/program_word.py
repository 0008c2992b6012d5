"""Finds the words of a command that are programs: the agent's own, and all that it names. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

_WORD = re.compile(r"""[^\s'";&|()<>$`\\]+|'[^']*'|"[^"$`\\]*\"""")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHELLS = {"sh", "bash", "dash", "ksh", "zsh"}
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_JAVASCRIPT = {"node", "nodejs", "tsx", "ts-node"}
_OTHERS = {"ruby", "perl", "php", "Rscript", "lua"}
_RUNNERS = {"uv", "deno", "bun"}
"""Programs whose `run` takes a script."""
_PREFIXES: Mapping[str, frozenset[str]] = {
    "command": frozenset(),
    "doas": frozenset({"-u", "-C"}),
    "env": frozenset({"-u", "--unset", "-C", "--chdir"}),
    "exec": frozenset({"-a"}),
    "ionice": frozenset({"-c", "-n"}),
    "nice": frozenset({"-n"}),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T"}),
    "time": frozenset({"-f", "-o"}),
    "timeout": frozenset({"-s", "--signal", "-k", "--kill-after"}),
    "xargs": frozenset({"-n", "-I", "-P", "-L", "-s", "-d", "-a", "-E"}),
}
"""Words that start another program, and those of their options that take a value."""
_KEYWORDS = {"if", "then", "else", "elif", "do", "while", "until", "!", "{"}
"""Shell keywords that a command follows."""
_SHELLS_OWN = {"command", "exec"}
_LOOKS_UP = {"-v", "-V"}
"""Options of `command` that only look up a program."""
_SHELL_TEXT = re.compile(r"-[a-z]*c")
_NO_SCRIPT = {"-c", "-m", "-e", "-p", "--eval", "--print"}
"""Options after which code or a module follows, not a file."""
_WITH_VALUE = {"-W", "-X", "-r", "--require", "--import", "--loader", "-o", "-O", "-I"}
_OPERATORS = "();|&\n"
_BASH_BUILTINS = {"[[", "declare", "let", "local", "mapfile", "popd", "pushd", "shopt", "source", "time", "typeset"}
"""Commands of bash that `sh` may lack."""
_BASH_SYNTAX = re.compile(r"\w\+?=\(|(?<!\$)\(\(|[?*+@!]\(|\b(?:function|select|coproc)\s")
"""Arrays, arithmetic, patterns and functions of bash, in which words are no programs."""
_ARRAY = re.compile(r"""('[^']*'|"(?:\\.|[^"\\])*")|(\w\+?=)\([^()]*\)""", re.DOTALL)
_CONDITION = re.compile(r"\[\[\s.*?\s\]\]", re.DOTALL)
_CALCULATION = re.compile(
    r"((?:^|[;&|\n{!]|\b(?:do|then|else|if|elif|while|until)\b)\s*)\(\((?:[^();|\n]|\([^()]*\))*\)\)"
)
"""`(( … ))` as a command, which is `let` of bash."""
_FIND_ACTIONS = {"-exec", "-execdir", "-ok", "-okdir"}
_AT_START = r"(?:^|[;&|\n({]|\b(?:do|then|else)\b)\s*"
"""Where a command of a line may begin."""
_UNREADABLE = re.compile(rf"\balias\s|{_AT_START}eval\s")
"""Constructs that change which words are programs: only a shell can tell."""
_PATH_CHANGE = re.compile(
    rf"{_AT_START}(?:export\s+)?(?P<change>PATH=(?:\"[^\"]*\"|'[^']*'|[^\s;&|'\"])+|(?:(?P<go>cd)|\.|source)\s[^;&|<>\n()]+)"
)
"""Constructs that change where programs are found: a file that the shell reads, a new PATH, another folder."""
_ARITHMETIC = re.compile(r"\$\(\((?:[^()]|\([^()]*\))*\)\)")
_HERE_TEXT = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1([^\n]*)\n(?:.*?\n)??[ \t]*(?:\2[ \t]*(?=\n|\Z)|\Z)", re.DOTALL)
_CASE = re.compile(rf"(?:{_AT_START}case\s[^\n;]*?\sin\b|;;&?)\s*(?:esac\b|\(?[^()\n]*\))")
"""The head of a `case`, or the end of one of its branches, with the pattern that follows."""
_FUNCTION = re.compile(rf"{_AT_START}(?:function\s+)?([\w-]+)\s*\(\s*\)")
_PIECE = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|`[^`]*`|(?<![^\s;&|(])#[^\n]*""", re.DOTALL)
"""A quoted text, an escaped character, a substitution in backticks or a comment."""
_SUBSTITUTION = re.compile(r"\$\(((?:[^()]|\([^()]*\))*)|`([^`]*)`")
_QUOTED_OPERATOR = re.compile(r"""(['"\\])[();|&<>\n]+['"]?""")
_PROCESS_SUBSTITUTION = re.compile(r"[<>]\(")
_EXPANDED = frozenset("$`*?[]{}~\\'\"")
"""Expansions that only a shell can read."""


class ProgramWord(NamedTuple):
    """A word that names a program or a script, and its position, without its quotes."""

    text: str
    start: int
    end: int


class ProgramCall(NamedTuple):
    """The program that one command of a line runs, and the script that it interprets, if any."""

    program: str
    script: str | None = None
    args: tuple[str, ...] = ()


def find_program_words(command: str) -> tuple[ProgramWord | None, ProgramWord | None]:
    """Return the program that a shell command begins with and its script.

    None if there is none or only a shell can tell.
    """
    words = _split_words(command)
    first, _ = _find_program([word.text for word in words])
    if first >= len(words):
        return None, None
    script = find_script(words[first].text, [word.text for word in words[first + 1 :]])
    return words[first], None if script is None else words[first + 1 + script]


def find_program_calls(command: str) -> list[ProgramCall]:
    """Return what every command of a line runs, as far as known without a shell; including the command of `sh -c`.

    A program that only starts another one, such as `sudo`, comes after that one.
    """
    # An alias or an `eval` can turn any word into another program. Then nothing is claimed: a missing program that is
    # not one would turn a failure of the agent into an error of the world.
    if _UNREADABLE.search(command):
        return []
    calls = list[ProgramCall]()
    plain, functions, substitutions = _simplify_line(command)
    for text in substitutions:
        calls += find_program_calls(text)
    for words in _split_commands(plain):
        first, prefixes = _find_program(words)
        if first >= len(words):
            continue
        program, args = words[first], words[first + 1 :]
        if program in functions:
            continue
        script = find_script(program, args)
        calls.append(ProgramCall(program, None if script is None else args[script], tuple(args)))
        calls += [ProgramCall(prefix) for prefix in prefixes]
        calls += _find_inner_calls(program, args)
    return calls


def _find_inner_calls(program: str, args: Sequence[str]) -> list[ProgramCall]:
    """Return the commands that a program runs: those of `find -exec`, and those in the text that a shell is given."""
    name = PurePosixPath(program).name
    if name == "find":
        actions = [at + 1 for at, word in enumerate(args[:-1]) if word in _FIND_ACTIONS]
        return [
            call for at in actions for call in (ProgramCall(args[at]), *_find_inner_calls(args[at], args[at + 1 :]))
        ]
    text = _get_shell_text(program, args)
    if name in ("sh", "dash"):
        return find_program_calls(text)
    if _BASH_SYNTAX.search(_CONDITION.sub("[[", text)):
        return []
    return [call for call in find_program_calls(text) if call.program not in _BASH_BUILTINS]


def find_path_changes(command: str) -> list[str]:
    """Return the parts of a line that change where its programs are found: `. env/bin/activate`, `PATH=bin:$PATH`.

    Another folder counts only together with one of these, which may be relative to it.
    """
    changes = list(_PATH_CHANGE.finditer(command))
    return [] if all(match["go"] for match in changes) else [match["change"].strip() for match in changes]


def _get_shell_text(program: str, args: Sequence[str]) -> str:
    """Return the text that a shell is given to run; empty if there is none."""
    if PurePosixPath(program).name not in _SHELLS:
        return ""
    for at, word in enumerate(args[:-1]):
        if _SHELL_TEXT.fullmatch(word):
            return args[at + 1]
        if not word.startswith("-"):
            break
    return ""


def find_readable_calls(command: str) -> list[ProgramCall]:
    """Return the calls whose program is written literally, without shell expansion."""
    calls = find_program_calls(command)
    return [call for call in calls if call.program == "[[" or (call.program and not _EXPANDED & set(call.program))]


def get_module(call: ProgramCall) -> str:
    """Return the top-level module that `python -m` runs; empty if the command is not `python -m`."""
    if not _PYTHON.fullmatch(PurePosixPath(call.program).name) or "-m" not in call.args[:-1]:
        return ""
    return call.args[call.args.index("-m") + 1].partition(".")[0]


def find_script(program: str, args: Sequence[str]) -> int | None:
    """Return which argument is the script that a known interpreter runs; None if there is none."""
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


def _find_program(words: Sequence[str]) -> tuple[int, list[str]]:
    """Return the index of the program, and the programs before it that start it; assignments may precede it, too."""
    at, before, prefixes = 0, "", list[str]()
    while at < len(words):
        word, name = words[at], PurePosixPath(words[at]).name
        if before and word.startswith("-"):
            if before == "command" and word in _LOOKS_UP:
                return len(words), []
            at += 2 if word in _PREFIXES[before] else 1
        # Every other prefix is followed by the program, but `timeout` first takes a duration.
        elif before == "timeout":
            at, before = at + 1, "env"  # how long the program may take
        elif name in _PREFIXES:
            before = name
            prefixes += [] if word in _SHELLS_OWN else [word]
            at += 1
        elif _ASSIGNMENT.match(word) or word in _KEYWORDS:
            at += 1
        else:
            break
    return at, prefixes


def _simplify_line(line: str) -> tuple[str, set[str], list[str]]:
    """Return the line without text that only looks like a command; its functions; its substitutions in quotes.

    Here-documents, patterns of `case`, arithmetic and comments contain words that are not run. A substitution in double
    quotes is one word for `shlex`, so it is read separately.
    """
    substitutions = list[str]()

    def simplify(piece: re.Match[str]) -> str:
        text = piece[0]
        if text[0] == '"':
            substitutions.extend(_find_quoted_substitutions(text[1:-1]))
        if text[0] == "`":
            return f"$({text[1:-1]})"
        if text == "\\\n":
            return " "
        if _QUOTED_OPERATOR.fullmatch(text):
            return "_"  # `shlex` would not tell it from an operator
        return "" if text[0] == "#" else text

    plain = _ARRAY.sub(r"\1\2", _HERE_TEXT.sub(r"\3\n", blank_calculations(line)))
    plain = _PROCESS_SUBSTITUTION.sub(" (", _PIECE.sub(simplify, plain))
    functions = set(_FUNCTION.findall(plain))
    return _FUNCTION.sub(";", _CASE.sub(";", plain)), functions, substitutions


def blank_calculations(line: str) -> str:
    """Return the line with `[[ … ]]`, `(( … ))` and `$(( … ))` reduced to a word each."""
    return _CALCULATION.sub(r"\1let", _ARITHMETIC.sub("0", _CONDITION.sub("[[", line)))


def _find_quoted_substitutions(text: str) -> list[str]:
    """Return the commands whose output is inserted into a text in double quotes."""
    return [match[1] or match[2] or "" for match in _SUBSTITUTION.finditer(text)]


def _split_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of every command of a line, without redirections."""
    read = shlex.shlex(line, posix=True, punctuation_chars=_OPERATORS + "<>")
    read.whitespace, read.whitespace_split, read.commenters = " \t", True, ""
    words: list[str] = []
    # The commands around each open parenthesis: they continue after it, as in `test $(wc -l < a) = 2`.
    outer: list[list[str]] = []
    redirected = False
    try:
        for token in read:
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
                if words and words[-1].isdecimal():
                    words.pop()  # the descriptor, as in `(a; b) 2>/dev/null`
            elif redirected:
                redirected = False  # a file
            else:
                words.append(token)
    except ValueError:  # an unclosed quote: the shell will report it
        return
    yield words
    yield from outer


def _split_words(command: str) -> list[ProgramWord]:
    """Return the words of the first command of a line, each with its span; quotes are left out of both."""
    words = []
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
        words.append(ProgramWord(word[0][1:-1] if quoted else word[0], at + quoted, ends - quoted))
        at = ends
        if at < len(command) and command[at] not in " \t":
            break
    return words
