"""Parses a Dockerfile into instructions; other modules interpret them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from msgspec import Struct

from holdfast.imports.foreign_task import InvalidTask, UnsupportedTask, read_text

_KNOWN = frozenset(
    ("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER",
     "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR")
)  # fmt: skip
_HEREDOC = re.compile(r"<<-?\s*[\"']?[A-Za-z_]")
_DIRECTIVE = re.compile(r"#\s*escape\s*=\s*(\S)", re.IGNORECASE)


class DockerStep(Struct, frozen=True):
    """One instruction."""

    name: str
    text: str
    """The text after the name, its lines joined."""
    line: int

    @property
    def words(self) -> list[str]:
        """The text as words; a JSON list is a list of words."""
        if self.text.startswith("["):
            try:
                parsed = json.loads(self.text)
            except ValueError:
                parsed = None
            if isinstance(parsed, list) and all(isinstance(word, str) for word in parsed):
                return parsed
        try:
            return shlex.split(self.text)
        except ValueError:
            return self.text.split()


def parse_dockerfile(text: str, name: str) -> list[DockerStep]:
    """Return the instructions in order; UserError, with the line, for what cannot be parsed."""
    match = _DIRECTIVE.match(text.lstrip("\ufeff"))
    escape = match[1] if match else "\\"
    steps: list[DockerStep] = []
    started, parts = 0, list[str]()
    # A line that ends in the escape character continues in the next one, without a space; comments and empty lines in
    # between are dropped. Docker does the same.
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue  # empty, or a comment: also between the lines of one instruction
        started = started if parts else number
        stripped = line.rstrip()
        if stripped.endswith(escape):
            parts.append(stripped[:-1])
            continue
        steps.append(_parse_step("".join([*parts, stripped]), started, name))
        parts = []
    if parts:
        steps.append(_parse_step("".join(parts), started, name))
    if not any(step.name == "FROM" for step in steps):
        raise InvalidTask(f"{name} is not a Dockerfile: it has no FROM", hint="begin with the image: FROM ubuntu:24.04")
    return steps


def _parse_step(text: str, line: int, name: str) -> DockerStep:
    word, _, rest = text.strip().partition(" ")
    if word.upper() not in _KNOWN:
        raise InvalidTask(f"{name}:{line}: {word[:40]!r} is not an instruction of a Dockerfile")
    if word.upper() in ("RUN", "COPY", "ADD") and _HEREDOC.search(rest):
        hint = "write its lines as one command, or as a file that is copied"
        raise UnsupportedTask(f"{name}:{line}: a here-document in {word.upper()} cannot be converted", hint=hint)
    return DockerStep(word.upper(), rest.strip(), line)


# -- docker ignore ---------------------------------------------------------------------------------
def load_dockerignore(context: Path, dockerfile: Path | None) -> Callable[[str], bool]:
    """Return a predicate for paths that docker ignores; the Dockerfile's own ignore file comes first."""
    specific = [dockerfile.with_name(f"{dockerfile.name}.dockerignore")] if dockerfile is not None else []
    file = next((path for path in (*specific, context / ".dockerignore") if path.is_file()), None)
    try:
        lines = read_text(file).splitlines() if file is not None else []
        rules = [_compile_rule(line) for line in lines if line.strip("!/ \t") and not line.startswith("#")]
    except re.error as broken:
        raise InvalidTask(f"{file}: a pattern cannot be read: {broken}") from broken

    def is_left_out(path: str) -> bool:
        is_ignored = False
        for pattern, left_out in rules:  # the last match counts
            if pattern.fullmatch(path):
                is_ignored = left_out
        return is_ignored

    return is_left_out


def _compile_rule(line: str) -> tuple[re.Pattern[str], bool]:
    """Return a pattern that matches a path and everything below it, and whether it excludes or re-includes."""
    # Docker matches a pattern against the whole path and everything below it, and lets the last matching line decide.
    # `**` stands for any number of folders, so it becomes a group that may be empty.
    text = line.strip()
    excludes = not text.startswith("!")
    steps = PurePosixPath(text.removeprefix("!").strip().lstrip("/")).parts
    pattern = "".join(r"(?:[^/]+/)*" if step == "**" else _compile_component(step) + "/" for step in steps)
    return re.compile(pattern.removesuffix("/") + (r".*" if steps[-1] == "**" else r"(?:/.*)?"), re.DOTALL), excludes


def _compile_component(step: str) -> str:
    """Return one component of a path, as Go matches it: `*`, `?`, `[a-z]`, `[^a-z]`; a backslash escapes a
    character.
    """
    return re.sub(r"\\.|\[\^?[^\]]+\]|.", lambda match: _compile_sign(match[0]), step, flags=re.DOTALL)


def _compile_sign(sign: str) -> str:
    if len(sign) > 2 or sign[0] == "[" != sign:
        inner = sign[1:-1]
        start = "^/" if inner.startswith("^") else ""
        return f"[{start}{re.escape(inner.removeprefix('^')).replace(chr(92) + '-', '-')}]"
    return {"*": "[^/]*", "?": "[^/]"}.get(sign) or re.escape(sign.removeprefix("\\") or sign)
