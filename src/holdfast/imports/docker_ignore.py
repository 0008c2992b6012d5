"""A .dockerignore: which files of a context COPY does not see."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from holdfast.errors import UserError
from holdfast.imports.foreign_task import text_of


def docker_ignored(context: Path, dockerfile: Path | None) -> Callable[[str], bool]:
    """Whether a path below the context is left out; the file that belongs to the Dockerfile alone comes first."""
    beside = [dockerfile.with_name(f"{dockerfile.name}.dockerignore")] if dockerfile is not None else []
    file = next((path for path in (*beside, context / ".dockerignore") if path.is_file()), None)
    try:
        rules = [_rule(line) for line in text_of(file).splitlines() if _says(line)] if file is not None else []
    except re.error as broken:
        raise UserError(f"{file}: a pattern cannot be read: {broken}") from broken

    def ignored(path: str) -> bool:
        found = False
        for pattern, left_out in rules:  # the last that fits counts
            if pattern.fullmatch(path):
                found = left_out
        return found

    return ignored


def _says(line: str) -> bool:
    return bool(line.strip("!/ \t")) and not line.startswith("#")


def _rule(line: str) -> tuple[re.Pattern[str], bool]:
    """A pattern that fits a path and all that is below it, and whether it leaves out or takes back in."""
    text = line.strip()
    left_out = not text.startswith("!")
    steps = PurePosixPath(text.removeprefix("!").strip().lstrip("/")).parts
    made = "".join(r"(?:[^/]+/)*" if step == "**" else _step(step) + "/" for step in steps)
    return re.compile(made.removesuffix("/") + (r".*" if steps[-1] == "**" else r"(?:/.*)?"), re.DOTALL), left_out


def _step(step: str) -> str:
    """One step of a path, as Go matches it: `*`, `?`, `[a-z]`, `[^a-z]`; a backslash takes what follows as it is."""
    return re.sub(r"\\.|\[\^?[^\]]+\]|.", lambda found: _sign(found[0]), step, flags=re.DOTALL)


def _sign(sign: str) -> str:
    if len(sign) > 2 or sign[0] == "[" != sign:
        inner = sign[1:-1]
        start = "^/" if inner.startswith("^") else ""
        return f"[{start}{re.escape(inner.removeprefix('^')).replace(chr(92) + '-', '-')}]"
    return {"*": "[^/]*", "?": "[^/]"}.get(sign) or re.escape(sign.removeprefix("\\") or sign)
