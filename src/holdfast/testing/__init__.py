"""Test kits for plug-in authors: what every backend, fault and check of a family must do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from holdfast.errors import HoldfastError

T = TypeVar("T")


class ContractChecks(dict[str, Callable[[T, Path], Awaitable[None]]]):
    """The checks of one contract, by name."""

    def add(self, check: Callable[[T, Path], Awaitable[None]]) -> Callable[[T, Path], Awaitable[None]]:
        """Add a check under its name: a decorator."""
        self[check.__name__] = check
        return check

    async def run(self, subject: T, folder: Path) -> dict[str, str]:
        """Run all checks, each in its own folder below `folder`, and return the failures, by name."""
        failures = {}
        for name, check in self.items():
            own_folder = folder / name
            own_folder.mkdir()
            try:
                await check(subject, own_folder)
            except (AssertionError, HoldfastError, OSError) as failed:
                failures[name] = str(failed) or repr(failed)
        return failures
