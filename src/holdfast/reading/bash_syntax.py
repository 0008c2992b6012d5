"""Finds syntax of bash in a command that `sh` runs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from holdfast.reading.program_word import blank_calculations

_COMMAND_END = re.compile(r"(?:^|[;&|({)\n]|\b(?:if|elif|then|else|do|while|until)\s)\s*\Z")
"""Ends a text after which a command may begin."""
_CASE_WORD = re.compile(r"(?:case|esac)(?![^\s;&|()])")
_PARAMETER = re.compile(r"\$(?:[A-Za-z_]\w*|[\d@*#?$!-])")
_HEAD = re.compile(r"\$\{(?:!\w+|#?(?:\w+|[@*#?$!-])|)(?:\[|:.?|[^}\w:])?", re.DOTALL)
"""An expansion up to its operator."""
_HERE = re.compile(r"<<(-?)[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|<>()'\"\\])+)")
_CALCULATION = re.compile(r"\(\((?:[^();|\n]|\([^()]*\))*\)\)")
_ANSI_QUOTED = re.compile(r"\$'(?:\\.|[^'\\])*'?", re.DOTALL)
_COMMENT = re.compile(r"#[^\n]*")
_DESCRIPTOR = re.compile(r"\d+|-")


class ShellScan:
    """The syntax of a command: its quoted texts are `_`, or `$_` if they are expanded.

    Comments and here-documents are left out, and an escaped double quote stays as `"`.
    """

    def __init__(self, text: str) -> None:
        self.heads: list[str] = []
        """The expansions in braces, each up to its operator."""
        self.nested: list[str] = []
        """The commands in substitutions, whether quoted or not."""
        self._text = text
        self.bare = self._read_command(0, "")[0]

    def _read_command(self, at: int, closing: str) -> tuple[str, int]:
        """Return the syntax up to a closing parenthesis or the end, and the position after it."""
        text, bare, depth, cases = self._text, "", 0, 0
        here: list[tuple[str, bool]] = []
        while at < len(text):
            sign = text[at]
            # Character by character with the same stack that a shell has: quotes, substitutions, here-documents that
            # begin on the next line, and `case`, whose patterns end in a parenthesis that closes nothing.
            if sign == closing and not depth and not cases:
                return bare, at + 1
            start = not bare or bare[-1] in " \t\n;&|()"
            if sign in "'\"\\$`":
                part, at = self._read_quoted(at)
            elif sign == "#" and start and (comment := _COMMENT.match(text, at)):
                part, at = "", comment.end()
            elif sign == "<" and text.startswith("<<<", at):
                part, at = "<<<", at + 3
            elif sign == "<" and (opened := _HERE.match(text, at)):
                here.append((re.sub(r"['\"\\]", "", opened[2]), bool(opened[1])))
                part, at = " ", opened.end()
            elif sign == "(" and (sum_ := _CALCULATION.match(text, at)) and _COMMAND_END.search(bare[-40:]):
                part, at = "let", sum_.end()
            elif sign in "ce" and start and (word := _CASE_WORD.match(text, at)):
                if _COMMAND_END.search(bare[-40:]):
                    cases = cases + 1 if word[0] == "case" else max(0, cases - 1)
                part, at = word[0], word.end()
            else:
                # In a `case`, the parenthesis before a pattern is optional.
                depth = depth if cases else max(0, depth + (sign == "(") - (sign == ")"))
                part, at = sign, at + 1
                if sign == "\n" and here:
                    at, here = self._skip_here_texts(at, here), []
            bare += part
        return bare, min(at, len(text))

    def _read_quoted(self, at: int) -> tuple[str, int]:
        """Return what stands for a quoted text, an escaped character or an expansion, and the position after it."""
        text, sign = self._text, self._text[at]
        if sign == "'":
            end = text.find("'", at + 1)
            return "_", len(text) if end < 0 else end + 1
        if sign == "\\":
            following = text[at + 1 : at + 2]
            return {'"': '"', "\n": ""}.get(following, "_"), at + 2
        if sign == '"':
            end, expanded = self._read_text(at + 1, '"')
            inner = text[at + 1 : end - 1]
            return ("$_" if expanded else inner if _DESCRIPTOR.fullmatch(inner) else "_"), end
        if text.startswith("$'", at) and (quoted := _ANSI_QUOTED.match(text, at)):
            return "$'", quoted.end()
        end = self._read_expansion(at, quoted=False)
        return ("$_", end) if end > at + 1 else (sign, end)

    def _read_text(self, at: int, closing: str, *, literal: bool = False) -> tuple[int, bool]:
        """Return the position after a text in double quotes or braces, and whether anything in it is expanded.

        `literal` means that single quotes are quotes in it.
        """
        text, expanded = self._text, False
        while at < len(text) and text[at] != closing:
            if text[at] == "\\":
                at += 2
            elif text[at] in "$`":
                end = self._read_expansion(at)
                expanded, at = expanded or end > at + 1, end
            elif text[at] == "'" and literal:
                at = self._read_quoted(at)[1]
            elif text[at] == '"':  # in braces
                at = self._read_text(at + 1, '"')[0]
            else:
                at += 1
        return min(at + 1, len(text)), expanded

    def _read_expansion(self, at: int, *, quoted: bool = True) -> int:
        """Return the position after an expansion or a substitution; after its sign if it is none."""
        text = self._text
        if text[at] == "`":
            end = at + 1
            while end < len(text) and text[end] != "`":
                end += 2 if text[end] == "\\" else 1
            self.nested.append(re.sub(r"\\([$`\\])", r"\1", text[at + 1 : end]))
            return min(end + 1, len(text))
        if text.startswith("$((", at) and (end := self._read_sum(at + 3)):
            return end
        if text.startswith("$(", at):
            lengths = len(self.heads), len(self.nested)
            end = self._read_command(at + 2, ")")[1]
            del self.heads[lengths[0] :], self.nested[lengths[1] :]  # they are found again in the command itself
            self.nested.append(text[at + 2 : end - 1 if text[end - 1] == ")" else end])
            return end
        if text.startswith("${", at) and (head := _HEAD.match(text, at)):
            self.heads.append(head[0])
            # The sign after the operator may be a quote or an expansion.
            after = head.end() - (head[0][-1] in "}$`\"'\\" and len(head[0]) > 3)
            return self._read_text(after, "}", literal=not quoted or head[0][-1] in "#%")[0]
        parameter = _PARAMETER.match(text, at)
        return parameter.end() if parameter else at + 1

    def _read_sum(self, at: int) -> int:
        """Return the position after `$(( … ))`; 0 if it is a substitution that begins with a subshell."""
        text, depth = self._text, 0
        while at < len(text):
            if text[at] in "$`":
                at = self._read_expansion(at)
                continue
            if text[at] == ")" and not depth:
                return at + 2 if text.startswith("))", at) else 0
            depth += (text[at] == "(") - (text[at] == ")")
            at += 1
        return 0

    def _skip_here_texts(self, at: int, here: list[tuple[str, bool]]) -> int:
        """Return the position after the here-documents that begin on this line."""
        for mark, indented in here:
            while at < len(self._text):
                end = self._text.find("\n", at)
                end = len(self._text) if end < 0 else end
                line = self._text[at:end]
                at = end + 1
                if (line.lstrip("\t") if indented else line) == mark:
                    break
        return min(at, len(self._text))


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
    features = [name for name, feature in BASH_FEATURES.items() if feature.written.search(syntax)]
    return list(dict.fromkeys([*features, *(name for code in scan.nested for name in find_bash_features(code))]))
