"""Test kits for plug-in authors: what every backend, fault and check of a family must do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from holdfast.errors import HoldfastError

T = TypeVar("T")


async def run_checks(
    checks: Mapping[str, Callable[[T, Path], Awaitable[None]]], subject: T, folder: Path
) -> dict[str, str]:
    """Run all checks, each in its own folder below `folder`, and return the failures, by name."""
    failures = {}
    for name, check in checks.items():
        own = folder / name
        own.mkdir()
        try:
            await check(subject, own)
        except (AssertionError, HoldfastError, OSError) as failed:
            failures[name] = str(failed) or repr(failed)
    return failures
