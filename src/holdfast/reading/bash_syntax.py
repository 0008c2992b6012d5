"""Finds syntax of bash in a command that `sh` runs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from holdfast.reading.program_word import blank_calculations
from holdfast.reading.shell_scan import ShellScan

_COMMAND = r"(?:^|[;&|()\n]|(?<!\S)\{\s)\s*(?:(?:if|elif|then|else|do|while|until|!|\{)\s+)*"
"""Where a command may begin."""
_PART = r"""[^{}\s"';&|<>()]*"""
_BASH = "bash's "


class BashFeature(NamedTuple):
    """The syntax of a feature, and a command that succeeds in a shell that has it."""

    written: re.Pattern[str]
    probe: str


BASH_FEATURES: Mapping[str, BashFeature] = {
    f"{_BASH}{name}": BashFeature(re.compile(written, re.MULTILINE), probe)
    for name, written, probe in (
        ("&>", r"&>", '[ -z "$(echo x &> /dev/null)" ]'),
        (">& FILE", r">&\s*(?![\d&$-])\S", ": >& /dev/null"),
        ("|&", r"\|&(?!&)", ": |& cat"),
        ("<( )", r"[<>]\(", "cat <(:)"),
        ("<<<", r"<<<", "cat <<< x"),
        ("[ a == b ]", rf"{_COMMAND}(?:\[|test)\s[^;&|\n]*?(?<!\s=)(?<!!=)\s==\s", "[ a == a ]"),
        ("${x:0:1}", r"\$\{(?:\w+|[@*])(?::[^-=?+]|/)", 'x=ab; [ "${x:0:1}${x/a/b}" = abb ]'),
        ("${x^^}", r"\$\{\w+[\^,]", 'x=a; [ "${x^^}" = A ]'),
        ("${!x}", r"\$\{!\w", 'x=y; y=z; [ "${!x}" = z ]'),
        ("arrays", r"\w\+?=\(|\$\{[#!]?\w+\[", 'x=(a b); [ "${x[1]}" = b ]'),
        ("set -o pipefail", rf"{_COMMAND}set\s(?:[^;&|\n]*\s)?-\w*o\s+pipefail", "set -o pipefail"),
        ("{a,b}", rf"\{{(?:{_PART},{_PART}|-?\w+\.\.-?\w+(?:\.\.-?\d+)?)\}}", '[ "$(echo {a,b})" = "a b" ]'),
        ("$'…'", r"\$'", "[ $'a' = a ]"),
    )
}
"""Syntax that a plain `sh` rejects or, worse, reads in another way: for it, `cmd &> file` is `cmd &` and succeeds.

No name has a slash: it would be taken for a path.
"""
_WORDS = {"let": "(( or let"} | {
    word: word for word in ("[[", "declare", "function", "mapfile", "popd", "pushd", "shopt", "source", "typeset")
}
"""Commands of bash that sh may lack, as a report names them."""


def explain_bash_only(name: str) -> str:
    """Return why sh cannot run a feature or command of bash, and what to do; empty if it is a program."""
    feature = _WORDS.get(name) or (name.removeprefix(_BASH) if name in BASH_FEATURES else "")
    return feature and f"the sh of this world has no {feature}; write it for sh, or run it with bash -c"


def find_bash_features(command: str) -> list[str]:
    """Return the names of the features in a command, ignoring text that is quoted for another shell."""
    scan = ShellScan(command)
    syntax = "\n".join((blank_calculations(scan.bare), *scan.heads))
    own = [name for name, one in BASH_FEATURES.items() if one.written.search(syntax)]
    return list(dict.fromkeys([*own, *(name for code in scan.nested for name in find_bash_features(code))]))
