"""What the command line and the run add to a spec: where model calls go, and how worlds are opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.model.trial import Trial
from holdfast.plugins import DEFAULT_BACKEND

if TYPE_CHECKING:
    from holdfast.world.kept_world import WorldKeeper


class ModelOptions(Struct, frozen=True):
    """Where model calls are kept or answered from, as the command line says."""

    record: Path | None = None
    replay: Path | None = None
    mask: Callable[[str], str] = str
    """Takes secrets out of what is recorded."""


ASKED = ModelOptions()
"""Model calls go where the spec sends them, and are not kept."""


class WorldOptions(Struct, frozen=True):
    """What the command line and the run add to a spec's world."""

    backend: str = DEFAULT_BACKEND
    secrets: Mapping[str, str] = {}
    strict: bool = False
    """What the backend cannot enforce is refused."""
    keep: WorldKeeper | None = None
    """Where the worlds of trials that failed stay for a look."""
    told: Callable[[Trial, str], None] = lambda trial, what: None
    """Hears what is of use only while a trial runs."""


USUAL = WorldOptions()
