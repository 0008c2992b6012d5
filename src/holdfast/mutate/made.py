"""The mutations of a spec."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from holdfast.errors import NotBuilt
from holdfast.model.spec import Spec
from holdfast.model.task import Task


class MadeTasks(Struct, frozen=True):
    """What is asked instead of the golden prompts, and what the user should know of it."""

    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()


def mutated(spec: Spec, environ: Mapping[str, str]) -> MadeTasks:
    """Mutations of every golden prompt."""
    raise NotBuilt("mutation runs are not in this release yet")
