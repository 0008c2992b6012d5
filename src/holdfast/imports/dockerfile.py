"""A Dockerfile as its instructions; what they mean is read elsewhere."""

from __future__ import annotations

import json
import re
import shlex

from msgspec import Struct

from holdfast.errors import UserError

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
    """What follows the name, its lines joined."""
    line: int

    @property
    def words(self) -> list[str]:
        """The text as words; a JSON list is one."""
        if self.text.startswith("["):
            try:
                found = json.loads(self.text)
            except ValueError:
                found = None
            if isinstance(found, list) and all(isinstance(word, str) for word in found):
                return found
        try:
            return shlex.split(self.text)
        except ValueError:
            return self.text.split()


def docker_steps(text: str, name: str) -> list[DockerStep]:
    """The instructions in order; UserError, with the line, for what cannot be read."""
    escape = _escape(text)
    steps: list[DockerStep] = []
    started, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue  # nothing, or a comment: also between the lines of one instruction
        started = started if parts else number
        stripped = line.rstrip()
        if stripped.endswith(escape):
            parts.append(stripped[:-1])
            continue
        steps.append(_step(" ".join([*parts, stripped]), started, name))
        parts = []
    if parts:
        steps.append(_step(" ".join(parts), started, name))
    if not any(step.name == "FROM" for step in steps):
        raise UserError(f"{name}: no FROM: not a Dockerfile", hint="begin it with the image: FROM ubuntu:24.04")
    return steps


def _escape(text: str) -> str:
    found = _DIRECTIVE.match(text.lstrip("\ufeff"))
    return found[1] if found else "\\"


def _step(text: str, line: int, name: str) -> DockerStep:
    word, _, rest = text.strip().partition(" ")
    if word.upper() not in _KNOWN:
        raise UserError(f"{name}:{line}: {word[:40]!r} is no instruction of a Dockerfile")
    if word.upper() in ("RUN", "COPY", "ADD") and _HEREDOC.search(rest):
        hint = "write its lines as one command, or as a file that is copied"
        raise UserError(f"{name}:{line}: a here-document in {word.upper()} cannot be carried over", hint=hint)
    return DockerStep(word.upper(), rest.strip(), line)
