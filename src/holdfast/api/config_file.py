"""The default spec file of a command."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import UsageError

DEFAULT_FILES = ("holdfast.yaml", "flakestorm.yaml")


def find_config(path: Path | None) -> Path:
    """Return the path file, or the first default file that exists here."""
    if path is not None:
        return path
    for name in DEFAULT_FILES:
        if Path(name).is_file():
            return Path(name)
    raise UsageError(
        f"there is no {' or '.join(DEFAULT_FILES)} here",
        hint="name one with -c FILE, or create one: holdfast init",
        code="spec-missing",
    )
