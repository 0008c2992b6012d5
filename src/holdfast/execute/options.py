"""Options that the command line and the run add to a spec: where model calls go, and how worlds are opened."""

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
    """The recordings of model calls to write or replay, as set on the command line."""

    record: Path | None = None
    replay: Path | None = None
    mask: Callable[[str], str] = str
    """Removes secrets from recordings."""


ASKED = ModelOptions()
"""Model calls go where the spec sends them, and are not recorded."""


class WorldOptions(Struct, frozen=True):
    """Options that the command line and the run add to a spec's world."""

    backend: str = DEFAULT_BACKEND
    secrets: Mapping[str, str] = {}
    strict: bool = False
    """Reject a backend that lacks a feature."""
    keep: WorldKeeper | None = None
    """Where the worlds of failed trials are kept for inspection."""
    on_message: Callable[[Trial, str], None] = lambda trial, what: None
    """Receives messages that matter only while a trial runs."""


USUAL = WorldOptions()
