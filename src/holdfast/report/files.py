"""Writes a report to a file; the suffix says which."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from holdfast import plugins
from holdfast.errors import UsageError
from holdfast.model.run import Run
from holdfast.protocols import Reporter

SUFFIXES: Mapping[str, str] = {".html": "html", ".json": "json", ".xml": "junit", ".md": "markdown"}
"""Reporter by suffix. A plug-in's reporter answers to the suffix of its own name."""


def reporter(path: Path) -> Reporter:
    """The reporter for that path; UsageError if there is none, so ask before a long run."""
    suffix = path.suffix.lower()
    name = SUFFIXES.get(suffix, suffix[1:] if suffix[1:] not in SUFFIXES.values() else "")
    found = plugins.find("reporters", name) if name else None
    if found is None:
        raise UsageError(
            f"cannot tell the format of {path}: its name ends in {suffix or 'no suffix'}",
            hint=f"end it in one of {', '.join(_valid())}",
        )
    made: Reporter = found()
    return made


def write(run: Run, path: Path) -> None:
    """Renders the run and puts it at `path`, whole or not at all; makes missing folders."""
    files = list(reporter(path).render(run).values())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        place(path, files[0])
    except OSError as refused:
        raise UsageError(f"cannot write {path}: {refused.strerror}") from refused


def place(path: Path, content: bytes) -> None:
    """Writes beside the target and renames, so that a reader never sees half a file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _valid() -> list[str]:
    others = [f".{name}" for name in plugins.names("reporters") if name not in SUFFIXES.values()]
    return [*SUFFIXES, *others]
